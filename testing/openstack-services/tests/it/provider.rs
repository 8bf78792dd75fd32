//! The provider on the real services, and the same bodies on the simulator: what it leaves behind is read from the APIs.

mod cluster;
mod nodes;
mod routes;
mod services;

/// Each body on both grounds. The real one is left out where there is none.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn on_real_services() {
                if let Some(ground) = $crate::ground::Ground::real().await {
                    super::$name(ground).await;
                }
            }

            #[tokio::test]
            async fn on_the_simulator() {
                let pending = std::time::Duration::from_millis(300);
                super::$name($crate::ground::Ground::simulated(pending).await).await;
            }
        }
    )*};
}

use on_both;
