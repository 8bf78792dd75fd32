//! What the handles of all simulators have, and what their builders have: the same words for the same things.
//!
//! Each cloud has types of its own for both, so these are methods by macro rather than of a type that a cloud would wrap.

use serde_json::Value;

use crate::faults::Faults;
use crate::journal::Journal;
use crate::project::Project;

/// The methods of a handle that no cloud has of its own. It has the fields `shared: Shared<State>` and
/// `running: Running`, and its state has `behaviour` and `bound`.
///
/// ```ignore
/// impl ExampleSim {
///     bowline_cloud_kit::handle!(State, Behaviour, Builder);
/// }
/// ```
#[macro_export]
macro_rules! handle {
    ($state:ty, $behaviour:ty, $builder:ty) => {
        /// Settings for a new one.
        pub fn builder() -> $builder {
            <$builder>::default()
        }

        /// The API as an in-memory `tower::Service`.
        pub fn service(&self) -> $crate::CloudService {
            self.running.service()
        }

        /// Serves the API on a socket until the answer is stopped or dropped.
        ///
        /// # Errors
        ///
        /// If the listener has no local address.
        pub fn serve(&self, listener: ::tokio::net::TcpListener) -> ::std::io::Result<$crate::Server> {
            self.running.serve(listener)
        }

        /// The record of every request.
        pub fn journal(&self) -> &$crate::Journal {
            self.running.journal()
        }

        /// The fault rules.
        pub fn faults(&self) -> &$crate::Faults {
            self.running.faults()
        }

        /// The switches now.
        pub fn behaviour(&self) -> $behaviour {
            self.read().behaviour.clone()
        }

        /// Changes the switches.
        pub fn set_behaviour(&self, change: impl FnOnce(&mut $behaviour)) {
            self.write(|state| change(&mut state.behaviour));
        }

        /// Where the data plane listens for a TCP port of an address, once it does.
        pub fn bound_address(
            &self,
            address: ::std::net::IpAddr,
            port: u16,
        ) -> ::std::option::Option<::std::net::SocketAddr> {
            self.bound_to($crate::dataplane::Transport::Tcp, address, port)
        }

        /// Where the data plane listens for a port of an address, once it does.
        pub fn bound_to(
            &self,
            transport: $crate::dataplane::Transport,
            address: ::std::net::IpAddr,
            port: u16,
        ) -> ::std::option::Option<::std::net::SocketAddr> {
            let wanted = ::std::net::SocketAddr::new(address, port);
            $crate::dataplane::Bound::find(&self.read().bound, transport, wanted)
        }

        /// The state as it is at this moment of the clock.
        pub(crate) fn read(&self) -> ::std::sync::MutexGuard<'_, $state> {
            self.shared.read()
        }

        /// Changes the state and tells the data plane.
        pub(crate) fn write<T>(&self, change: impl FnOnce(&mut $state) -> T) -> T {
            self.shared.write(change)
        }
    };
}

/// A handle as a runner of scenarios takes it, whatever its cloud.
pub trait Double: Project {
    /// The record of every request.
    fn journal(&self) -> &Journal;

    /// The fault rules.
    fn faults(&self) -> &Faults;

    /// All objects by kind, in the order of their creation.
    fn objects(&self) -> Value;

    /// Puts an object in the place of the one with this ID; whether there is one.
    ///
    /// # Errors
    ///
    /// If it is none of this kind.
    fn replace(&self, kind: &str, id: &str, object: Value) -> serde_json::Result<bool>;

    /// The switches.
    fn switches(&self) -> Value;

    /// Sets all of them.
    ///
    /// # Errors
    ///
    /// If one of them has no such value.
    fn set_switches(&self, switches: Value) -> serde_json::Result<()>;
}

/// Makes a handle a [`Double`]. Its objects are named by the fields of the state, each a map by ID.
///
/// ```ignore
/// bowline_cloud_kit::double!(ExampleSim: servers, load_balancers);
/// ```
#[macro_export]
macro_rules! double {
    ($handle:ty: $($kind:ident),+) => {
        impl $crate::Double for $handle {
            fn journal(&self) -> &$crate::Journal {
                self.running.journal()
            }

            fn faults(&self) -> &$crate::Faults {
                self.running.faults()
            }

            fn objects(&self) -> $crate::Value {
                let state = self.read();
                let mut objects = ::serde_json::Map::new();
                $(
                    let of_kind: ::std::vec::Vec<_> = state.$kind.values().collect();
                    objects.insert(stringify!($kind).to_owned(), ::serde_json::json!(of_kind));
                )+
                $crate::Value::Object(objects)
            }

            fn replace(&self, kind: &str, id: &str, object: $crate::Value) -> ::serde_json::Result<bool> {
                self.write(|state| {
                    match kind {
                        $(stringify!($kind) => {
                            for (key, there) in &mut state.$kind {
                                let key = key.to_string();
                                if key == id {
                                    *there = ::serde_json::from_value(object)?;
                                    return Ok(true);
                                }
                            }
                        })+
                        _ => {}
                    }
                    Ok(false)
                })
            }

            fn switches(&self) -> $crate::Value {
                ::serde_json::json!(self.read().behaviour)
            }

            fn set_switches(&self, switches: $crate::Value) -> ::serde_json::Result<()> {
                let switches = ::serde_json::from_value(switches)?;
                self.write(|state| state.behaviour = switches);
                Ok(())
            }
        }
    };
}

/// The methods of a builder that no cloud has of its own. It has the fields `settings: Settings` and `behaviour`, and a
/// method `data_plane`.
///
/// ```ignore
/// impl Builder {
///     bowline_cloud_kit::knobs!(Behaviour);
/// }
/// ```
#[macro_export]
macro_rules! knobs {
    ($behaviour:ty) => {
        /// All common settings at once, those that were set before included.
        #[must_use]
        pub fn settings(self, settings: $crate::Settings) -> Self {
            let data_plane = settings.data_plane;
            let builder = Self { settings, ..self };
            if data_plane {
                builder.data_plane()
            } else {
                builder
            }
        }

        /// Where ids and jitter come from: the same seed gives the same ones. Default: 0.
        #[must_use]
        pub fn seed(mut self, seed: u64) -> Self {
            self.settings.seed = seed;
            self
        }

        /// Wall time. Default: a clock that starts at a fixed time.
        #[must_use]
        pub fn clock(mut self, clock: $crate::Clock) -> Self {
            self.settings.clock = ::std::option::Option::Some(clock);
            self
        }

        /// The time that passes before each request is carried out. Default: none.
        #[must_use]
        pub fn latency(mut self, latency: ::std::time::Duration) -> Self {
            self.settings.latency = latency;
            self
        }

        /// The switches to begin with.
        #[must_use]
        pub fn behaviour(mut self, behaviour: $behaviour) -> Self {
            self.behaviour = behaviour;
            self
        }
    };
}
