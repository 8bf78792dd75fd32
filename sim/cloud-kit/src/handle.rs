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
///     bowline_cloud_kit::handle!(State, Behaviour);
/// }
/// ```
#[macro_export]
macro_rules! handle {
    ($state:ty, $behaviour:ty) => {
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

        /// The end state without ids and times, see [`bowline_cloud_kit::Inspect`].
        pub fn snapshot(&self) -> $crate::Value {
            $crate::Inspect::snapshot(&*self.read())
        }

        /// What must never be and is, and writes that met on one object, in words; empty if all is well.
        pub fn check_invariants(&self) -> ::std::vec::Vec<::std::string::String> {
            let mut found = $crate::Inspect::violations(&*self.read());
            let overlaps = self.journal().overlaps();
            found.extend(overlaps.iter().map(::std::string::ToString::to_string));
            found
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

/// The kinds of objects of a handle's state, which makes it a [`Double`]: how they are listed, read and changed by hand. Each has the
/// field of the state, a map by ID, the type of the object, and if wished for the names of the methods that answer all of them in
/// order of creation, that answer one, and that change one in any way.
///
/// ```ignore
/// bowline_cloud_kit::double! {
///     ExampleSim by Uuid;
///     servers: Server, all servers, one server, edit edit_server;
///     volumes: Volume;
/// }
/// ```
#[macro_export]
macro_rules! double {
    ($handle:ident by &str; $($kinds:tt)+) => {
        $crate::double!(@id $handle, &str, id, id; $($kinds)+);
    };
    ($handle:ident by $type:ty; $($kinds:tt)+) => {
        $crate::double!(@id $handle, $type, id, &id; $($kinds)+);
    };
    (
        @id $handle:ident, $type:ty, $id:ident, $key:expr;
        $($kind:ident: $object:ty $(, all $all:ident)? $(, one $one:ident)? $(, edit $edit:ident)?;)+
    ) => {
        impl $handle {
            $(
                $(
                    #[doc = concat!("All `", stringify!($all), "` in order of creation.")]
                    pub fn $all(&self) -> ::std::vec::Vec<$object> {
                        self.read().$kind.values().cloned().collect()
                    }
                )?
                $(
                    #[doc = concat!("One of `", stringify!($kind), "`.")]
                    pub fn $one(&self, $id: $type) -> ::std::option::Option<$object> {
                        self.read().$kind.get($key).cloned()
                    }
                )?
                $(
                    #[doc = concat!("Changes one of `", stringify!($kind), "` in any way.")]
                    pub fn $edit(&self, $id: $type, change: impl FnOnce(&mut $object)) {
                        self.write(|state| state.$kind.get_mut($key).map(change));
                    }
                )?
            )+
        }

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
                                    *there = ::serde_json::from_value::<$object>(object)?;
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

/// The builder of a simulator, and how one is begun and ends. The crate has an `Options`, a `Behaviour`, a `State` that is
/// made of both, and an `Api` over it.
///
/// ```ignore
/// bowline_cloud_kit::builder!(Builder makes ExampleSim);
/// ```
#[macro_export]
macro_rules! builder {
    ($builder:ident makes $sim:ident) => {
        /// Settings of a new simulator. Everything has a default.
        #[derive(Debug, Default)]
        pub struct $builder {
            options: Options,
            behaviour: Behaviour,
            settings: $crate::Settings,
        }

        impl $sim {
            /// Settings for a new one.
            pub fn builder() -> $builder {
                $builder::default()
            }
        }

        impl $builder {
            $crate::knobs!(Behaviour);

            /// Builds it. Needs a tokio runtime, whose clock it follows.
            pub fn build(self) -> $sim {
                let (shared, running) = self.settings.start(
                    |seed, clock| State::new(self.options, self.behaviour, seed, clock),
                    |shared| Api { shared },
                );
                $sim { shared, running }
            }
        }
    };
}

/// Methods of a builder that set one field each: name, argument, field and value.
///
/// ```ignore
/// impl Builder {
///     bowline_cloud_kit::setters! {
///         /// The range of public addresses. Default: 203.0.113.0/24.
///         public_range(range: IpNet) options.public = range.trunc();
///     }
/// }
/// ```
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),+) $($field:ident).+ = $value:expr;)+) => {
        $(
            $(#[$doc])*
            pub fn $name(mut self, $($argument: $type),+) -> Self {
                self.$($field).+ = $value;
                self
            }
        )+
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
        pub fn settings(self, settings: $crate::Settings) -> Self {
            let data_plane = settings.data_plane;
            let builder = Self { settings, ..self };
            if data_plane {
                builder.data_plane()
            } else {
                builder
            }
        }

        $crate::setters! {
            /// Where ids and jitter come from: the same seed gives the same ones. Default: 0.
            seed(seed: u64) settings.seed = seed;
            /// Wall time. Default: a clock that starts at a fixed time.
            clock(clock: $crate::Clock) settings.clock = ::std::option::Option::Some(clock);
            /// The time that passes before each request is carried out. Default: none.
            latency(latency: ::std::time::Duration) settings.latency = latency;
            /// The switches to begin with.
            behaviour(behaviour: $behaviour) behaviour = behaviour;
        }
    };
}
