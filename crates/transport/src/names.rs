//! Looks names up, and tells how long that took. An address is not looked up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tokio::time::Instant;
use tower::Service;

/// Is told which name was looked up, and how long that took.
pub type OnLookup = Arc<dyn Fn(&str, Duration) + Send + Sync>;

/// Looks names up as the system does. It is one type whether anybody is told or not, because each type of it is another
/// copy of the client in the program.
#[derive(Clone)]
pub struct Names<R = GaiResolver> {
    pub(crate) resolver: R,
    pub(crate) on_lookup: Option<OnLookup>,
}

impl<R> Service<Name> for Names<R>
where
    R: Service<Name, Future: Send + 'static>,
{
    type Response = R::Response;
    type Error = R::Error;
    type Future = Pin<Box<dyn Future<Output = Result<R::Response, R::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), R::Error>> {
        self.resolver.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (on_lookup, host, begun) = (self.on_lookup.clone(), name.to_string(), Instant::now());
        let answer = self.resolver.call(name);
        Box::pin(async move {
            let answer = answer.await;
            if let Some(on_lookup) = on_lookup {
                on_lookup(&host, begun.elapsed());
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lookup_is_told_with_the_name_that_was_looked_up() {
        let slow = tower::service_fn(|_: Name| async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, Infallible>(())
        });
        let told: Arc<Mutex<Vec<(String, Duration)>>> = Arc::default();
        let seen = Arc::clone(&told);
        let names = Names {
            resolver: slow,
            on_lookup: Some(Arc::new(move |host, took| {
                seen.lock().unwrap().push((host.to_owned(), took));
            })),
        };
        names.oneshot("api.example.com".parse().unwrap()).await.unwrap();
        let expected = ("api.example.com".to_owned(), Duration::from_millis(300));
        assert_eq!(*told.lock().unwrap(), [expected]);
    }
}
