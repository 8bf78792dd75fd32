//! Real traffic over the loopback interface.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests; a wrong answer is a failed test"
)]

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_kit::DataPlane;
use bowline_cloud_kit::dataplane::{
    Algorithm, Config, HealthChange, ListenerConfig, MemberConfig, MonitorConfig, PoolConfig, Probe,
    ProxyVersion, Timeouts, Transport,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

const DEADLINE: Duration = Duration::from_secs(10);

/// Tries again until it holds.
async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let end = tokio::time::Instant::now() + DEADLINE;
    while !holds().await {
        assert!(tokio::time::Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A member that answers its name, then echoes what it got until the client's end.
struct Echo {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn echo(name: &'static str) -> Echo {
    echo_at(name, "127.0.0.1:0".parse().unwrap()).await
}

async fn echo_at(name: &'static str, place: SocketAddr) -> Echo {
    let listener = TcpListener::bind(place).await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut got = Vec::new();
                stream.write_all(name.as_bytes()).await.unwrap_or_default();
                stream.read_to_end(&mut got).await.unwrap_or_default();
                stream.write_all(&got).await.unwrap_or_default();
            });
        }
    });
    Echo { address, task }
}

fn member(address: SocketAddr) -> (String, MemberConfig) {
    let config = MemberConfig {
        address: address.ip(),
        port: address.port(),
        monitor_port: address.port(),
        enabled: true,
    };
    (address.to_string(), config)
}

fn pool(members: &[SocketAddr]) -> PoolConfig {
    let members = members.iter().map(|&address| member(address)).collect();
    PoolConfig {
        algorithm: Algorithm::RoundRobin,
        proxy: None,
        members,
        monitor: None,
    }
}

fn monitor(probe: Probe) -> MonitorConfig {
    let (delay, timeout) = (Duration::from_millis(20), Duration::from_millis(200));
    MonitorConfig {
        probe,
        delay,
        timeout,
        up_threshold: 1,
        down_threshold: 2,
    }
}

const VIP: &str = "127.77.3.1";
const PORT: u16 = 443;

fn config(transport: Transport, pool: PoolConfig) -> Config {
    let listener = ListenerConfig {
        transport,
        address: vip(),
        port: PORT,
        pool: Some("p".to_owned()),
        allowed: Vec::new(),
        timeouts: Timeouts::default(),
    };
    Config {
        listeners: vec![listener],
        pools: [("p".to_owned(), pool)].into(),
    }
}

fn vip() -> IpAddr {
    VIP.parse().unwrap()
}

fn plane() -> DataPlane {
    DataPlane::new(Arc::new(|_| {}))
}

/// Sends `hi` and reads everything; empty if there is nobody.
async fn talk(plane: &DataPlane) -> String {
    let Some(address) = plane.bound_address(vip(), PORT) else {
        return String::new();
    };
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return String::new();
    };
    let mut answer = String::new();
    stream.write_all(b"hi").await.unwrap_or_default();
    stream.shutdown().await.unwrap_or_default();
    stream.read_to_string(&mut answer).await.unwrap_or_default();
    answer
}

#[tokio::test]
async fn round_robin_carries_both_directions() {
    let (a, b) = (echo("a").await, echo("b").await);
    let plane = plane();
    plane
        .apply(config(Transport::Tcp, pool(&[a.address, b.address])))
        .await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(talk(&plane).await);
    }
    assert_eq!(answers, ["ahi", "bhi", "ahi", "bhi"]);
    let address = plane.bound_address(vip(), PORT).unwrap();
    assert!(address.ip().is_loopback());
    plane.shut_down().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn member_that_fails_its_probes_gets_nothing_until_it_is_back() {
    let (a, b) = (echo("a").await, echo("b").await);
    let lost = b.address;
    let changes: Arc<Mutex<Vec<HealthChange>>> = Arc::default();
    let heard = Arc::clone(&changes);
    let plane = DataPlane::new(Arc::new(move |change| heard.lock().unwrap().push(change)));
    let wanted = PoolConfig {
        monitor: Some(monitor(Probe::Tcp)),
        ..pool(&[a.address, b.address])
    };
    plane.apply(config(Transport::Tcp, wanted)).await;
    let health = |up| {
        let found = plane.health("p", &lost.to_string()) == Some(up);
        async move { found }
    };
    eventually("b is up", || health(true)).await;
    drop(b);
    eventually("b is down", || health(false)).await;
    eventually("a is up", || async {
        plane.health("p", &a.address.to_string()) == Some(true)
    })
    .await;
    for _ in 0..4 {
        assert_eq!(talk(&plane).await, "ahi");
    }
    let back = echo_at("b", lost).await;
    eventually("b is used again", || async { talk(&plane).await == "bhi" }).await;
    let of_b: Vec<bool> = changes
        .lock()
        .unwrap()
        .iter()
        .filter(|it| it.member == lost.to_string())
        .map(|it| it.up)
        .collect();
    assert_eq!(of_b, [true, false, true]);
    drop(back);
}

#[tokio::test]
async fn change_of_the_monitor_does_not_stop_the_traffic() {
    let (a, b) = (echo("a").await, echo("b").await);
    let plane = plane();
    plane.apply(config(Transport::Tcp, pool(&[a.address]))).await;
    let key = |echo: &Echo| echo.address.to_string();
    let watched = |probe, members: &[SocketAddr]| PoolConfig {
        monitor: Some(monitor(probe)),
        ..pool(members)
    };
    plane
        .apply(config(
            Transport::Tcp,
            watched(Probe::Tcp, &[a.address, b.address]),
        ))
        .await;
    assert_eq!(plane.health("p", &key(&a)), Some(true), "was in use");
    assert_eq!(plane.health("p", &key(&b)), None, "is new");
    eventually("b is up", || async { plane.health("p", &key(&b)) == Some(true) }).await;
    plane
        .apply(config(
            Transport::Tcp,
            watched(Probe::TlsHello, &[a.address, b.address]),
        ))
        .await;
    assert_eq!(
        (plane.health("p", &key(&a)), plane.health("p", &key(&b))),
        (Some(true), Some(true))
    );
    eventually("the new probe decides", || async {
        plane.health("p", &key(&a)) == Some(false)
    })
    .await;
}

#[tokio::test]
async fn proxy_header_names_client_and_called_address() {
    let a = echo("").await;
    let plane = plane();
    for (version, length) in [(ProxyVersion::V1, None), (ProxyVersion::V2, Some(28))] {
        plane
            .apply(config(
                Transport::Tcp,
                PoolConfig {
                    proxy: Some(version),
                    ..pool(&[a.address])
                },
            ))
            .await;
        let mut stream = TcpStream::connect(plane.bound_address(vip(), PORT).unwrap())
            .await
            .unwrap();
        let own = stream.local_addr().unwrap();
        stream.write_all(b"hi").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).await.unwrap();
        match length {
            None => {
                let expected = format!("PROXY TCP4 {} {VIP} {} {PORT}\r\nhi", own.ip(), own.port());
                assert_eq!(String::from_utf8(got).unwrap(), expected);
            }
            Some(length) => {
                assert_eq!(&got[..16], b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c");
                assert_eq!(&got[20..24], &[127, 77, 3, 1]);
                assert_eq!(&got[24..26], &own.port().to_be_bytes());
                assert_eq!(&got[length..], b"hi");
            }
        }
    }
}

#[tokio::test]
async fn only_allowed_clients_come_through() {
    let a = echo("a").await;
    let plane = plane();
    for (allowed, answer) in [
        (vec!["192.0.2.0/24"], ""),
        (vec!["192.0.2.0/24", "127.0.0.0/8"], "ahi"),
        (vec![], "ahi"),
    ] {
        let mut wanted = config(Transport::Tcp, pool(&[a.address]));
        wanted.listeners[0].allowed = allowed.iter().map(|range| range.parse().unwrap()).collect();
        plane.apply(wanted).await;
        assert_eq!(talk(&plane).await, answer, "{allowed:?}");
    }
}

#[tokio::test]
async fn unaffected_connection_survives_a_change() {
    let (a, b) = (echo("a").await, echo("b").await);
    let plane = plane();
    plane.apply(config(Transport::Tcp, pool(&[a.address]))).await;
    let mut stream = TcpStream::connect(plane.bound_address(vip(), PORT).unwrap())
        .await
        .unwrap();
    let mut name = [0_u8; 1];
    stream.read_exact(&mut name).await.unwrap();
    let mut wanted = config(Transport::Tcp, pool(&[a.address, b.address]));
    let other = ListenerConfig {
        port: PORT + 1,
        ..wanted.listeners[0].clone()
    };
    wanted.listeners.push(other);
    plane.apply(wanted.clone()).await;
    stream.write_all(b"still").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "still");
    // The listener that goes takes its connections along; the other one stays.
    let mut second = TcpStream::connect(plane.bound_address(vip(), PORT + 1).unwrap())
        .await
        .unwrap();
    wanted.listeners.pop();
    plane.apply(wanted).await;
    let mut rest = Vec::new();
    let read = tokio::time::timeout(DEADLINE, second.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "closed");
    assert_eq!(plane.bound().len(), 1);
}

#[tokio::test]
async fn silent_client_is_disconnected() {
    let a = echo("").await;
    let plane = plane();
    let mut wanted = config(Transport::Tcp, pool(&[a.address]));
    wanted.listeners[0].timeouts.client_idle = Duration::from_millis(50);
    plane.apply(wanted).await;
    let mut stream = TcpStream::connect(plane.bound_address(vip(), PORT).unwrap())
        .await
        .unwrap();
    let read = tokio::time::timeout(DEADLINE, stream.read(&mut [0_u8; 1])).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
}

/// Answers each datagram with its name and the datagram.
async fn udp_echo(name: &'static str) -> Echo {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut datagram = [0_u8; 64];
        loop {
            let (length, from) = socket.recv_from(&mut datagram).await.unwrap();
            let answer = [name.as_bytes(), &datagram[..length]].concat();
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    Echo { address, task }
}

async fn ask(client: &UdpSocket, question: &[u8]) -> String {
    client.send(question).await.unwrap();
    let mut answer = [0_u8; 64];
    let length = tokio::time::timeout(DEADLINE, client.recv(&mut answer))
        .await
        .unwrap()
        .unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test]
async fn udp_client_stays_with_its_member() {
    let (a, b) = (udp_echo("a").await, udp_echo("b").await);
    let plane = plane();
    let wanted = PoolConfig {
        monitor: Some(monitor(Probe::UdpConnect)),
        ..pool(&[a.address, b.address])
    };
    plane.apply(config(Transport::Udp, wanted)).await;
    for up in [&a, &b] {
        eventually("up", || async {
            plane.health("p", &up.address.to_string()) == Some(true)
        })
        .await;
    }
    let address = plane.bound_to(Transport::Udp, vip(), PORT).unwrap();
    let mut answers = Vec::new();
    for question in [b"1", b"2"] {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(address).await.unwrap();
        answers.push(ask(&client, question).await);
        answers.push(ask(&client, question).await);
    }
    assert_eq!(answers, ["a1", "a1", "b2", "b2"]);
    let gone = a.address.to_string();
    drop(a);
    eventually("a is down", || async { plane.health("p", &gone) == Some(false) }).await;
}

/// An HTTP member that answers one status, with TLS if there is an acceptor.
async fn http(status: u16, tls: Option<tokio_rustls::TlsAcceptor>) -> Echo {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
            let tls = tls.clone();
            tokio::spawn(async move {
                match tls {
                    Some(tls) => {
                        if let Ok(mut stream) = tls.accept(stream).await {
                            stream.read(&mut [0_u8; 512]).await.unwrap_or_default();
                            stream.write_all(answer.as_bytes()).await.unwrap_or_default();
                            stream.shutdown().await.unwrap_or_default();
                        }
                    }
                    None => {
                        stream.read(&mut [0_u8; 512]).await.unwrap_or_default();
                        stream.write_all(answer.as_bytes()).await.unwrap_or_default();
                    }
                }
            });
        }
    });
    Echo { address, task }
}

fn acceptor() -> tokio_rustls::TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["member.test".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn probes_judge_by_their_kind() {
    let get = |tls, host: Option<&str>| Probe::Http {
        tls,
        method: "GET".to_owned(),
        path: "/livez".to_owned(),
        host: host.map(str::to_owned),
        expected: vec![200..=204],
    };
    let closed = echo("").await.address;
    let good = http(204, None).await;
    let bad = http(503, None).await;
    let secure = http(200, Some(acceptor())).await;
    for (probe, address, up) in [
        (get(false, None), good.address, true),
        (get(false, Some("x.test")), good.address, true),
        (get(false, Some("")), bad.address, false),
        (get(true, None), secure.address, true),
        (get(true, None), good.address, false),
        (Probe::TlsHello, secure.address, true),
        (Probe::TlsHello, bad.address, false),
        (Probe::Tcp, bad.address, true),
        (Probe::Tcp, closed, false),
        (Probe::Ping, closed, true),
        (Probe::Ping, "192.0.2.1:80".parse().unwrap(), false),
        (Probe::UdpConnect, closed, false),
    ] {
        let plane = plane();
        let text = format!("{probe:?} {address}");
        let wanted = PoolConfig {
            monitor: Some(monitor(probe)),
            ..pool(&[address])
        };
        plane.apply(config(Transport::Tcp, wanted)).await;
        eventually(&text, || async {
            plane.health("p", &address.to_string()) == Some(up)
        })
        .await;
    }
}
