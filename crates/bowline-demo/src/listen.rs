//! Answering HTTP/1.1 on a socket.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Serves for ever, so many connections at most; drop it to stop. An answer is made of a request and who sent it.
pub(crate) async fn serve<F, B>(
    listener: TcpListener,
    most: usize,
    connection: http1::Builder,
    answer: impl Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < most => accepted,
        };
        let Ok((stream, client)) = accepted else {
            // Out of descriptors is the usual reason; others close theirs meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (connection, answer) = (connection.clone(), answer.clone());
        connections.spawn(async move {
            let service = service_fn(|request| {
                let answer = answer(request, client);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            // A client that goes away early does no harm.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
