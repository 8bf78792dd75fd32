//! The web workload: one tiny responder on each node.

use std::net::{Ipv4Addr, SocketAddr};
use std::{fmt, io};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use tokio::net::{TcpListener, UdpSocket};
use tokio_util::task::AbortOnDropHandle;

use crate::listen;

/// What answers at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// A greeting over HTTP.
    Greeting,
    /// Whether the node has endpoints, as kube-proxy tells it for local traffic policies. Every node has one here.
    Health,
    /// Datagrams come back with the node's name.
    Echo,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Greeting => "tcp",
            Self::Health => "health check",
            Self::Echo => "udp",
        })
    }
}

/// A responder that runs until this is dropped.
pub(crate) struct Responder {
    /// Where it really listens.
    pub(crate) address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

/// Starts to answer at `wanted`, or at a port of 127.0.0.1 where that address cannot be had.
pub(crate) async fn start(node: &str, answer: Answer, wanted: SocketAddr) -> io::Result<Responder> {
    match start_at(node, answer, wanted).await {
        Err(error) if is_elsewhere(&error) => start_at(node, answer, (Ipv4Addr::LOCALHOST, 0).into()).await,
        started => started,
    }
}

/// Whether another place may do: this machine has only 127.0.0.1, or somebody listens at this port of all addresses.
fn is_elsewhere(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse
    )
}

async fn start_at(node: &str, answer: Answer, address: SocketAddr) -> io::Result<Responder> {
    let node = node.to_owned();
    let (address, task) = match answer {
        Answer::Echo => {
            let socket = UdpSocket::bind(address).await?;
            (socket.local_addr()?, tokio::spawn(echo(socket, node)))
        }
        Answer::Greeting | Answer::Health => {
            let listener = TcpListener::bind(address).await?;
            (
                listener.local_addr()?,
                tokio::spawn(serve(listener, node, answer)),
            )
        }
    };
    Ok(Responder {
        address,
        _task: AbortOnDropHandle::new(task),
    })
}

async fn echo(socket: UdpSocket, node: String) {
    let mut buffer = vec![0; 1500];
    loop {
        // An error here is about an earlier datagram that found nobody.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let mut reply = format!("{node} heard: ").into_bytes();
        reply.extend_from_slice(&buffer[..length]);
        let _ = socket.send_to(&reply, from).await;
    }
}

/// Owns its connections, so that they end with it, as they do when an instance is powered off.
async fn serve(listener: TcpListener, node: String, answer: Answer) {
    let reply = move |request: Request<Incoming>, client| {
        std::future::ready(reply(&node, answer, request.uri().path(), client))
    };
    listen::serve(listener, usize::MAX, http1::Builder::new(), reply).await;
}

fn reply(node: &str, answer: Answer, path: &str, client: SocketAddr) -> Response<Full<Bytes>> {
    let (status, text) = match (answer, path) {
        (Answer::Health, "/healthz" | "/livez") => (StatusCode::OK, "{\"localEndpoints\": 1}\n".to_owned()),
        (Answer::Health, _) => (StatusCode::NOT_FOUND, "not found\n".to_owned()),
        _ => (StatusCode::OK, format!("hello from {node}, you are {client}\n")),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_health_check_port_answers_as_kube_proxy_does() {
        let client = "127.0.0.1:5".parse().unwrap();
        for (path, status) in [("/healthz", 200), ("/livez", 200), ("/", 404)] {
            assert_eq!(
                reply("a", Answer::Health, path, client).status(),
                status,
                "{path}"
            );
        }
        assert_eq!(reply("a", Answer::Greeting, "/", client).status(), 200);
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_bound_is_replaced_by_a_port_of_this_machine() {
        let outside = "192.0.2.1:30080".parse().unwrap();
        let responder = start("a", Answer::Greeting, outside).await.unwrap();
        assert!(responder.address.ip().is_loopback());
        let page = crate::visitor::page(responder.address).await.unwrap();
        assert!(page.starts_with("hello from a, you are 127.0.0.1:"), "{page}");
    }

    #[tokio::test]
    async fn datagrams_come_back_with_the_nodes_name() {
        let responder = start("a", Answer::Echo, "127.0.0.1:0".parse().unwrap())
            .await
            .unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.send_to(b"hi", responder.address).await.unwrap();
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"a heard: hi");
    }
}
