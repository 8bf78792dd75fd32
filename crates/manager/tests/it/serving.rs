//! The secure port over real sockets.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

mod client;
mod paths;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_kube_io::SystemClock;
use bowline_manager::config::{AccessConfig, CertificateSource, ServingConfig};
use bowline_manager::health::Health;
use bowline_manager::metrics::{BuildInfo, Metrics};
use bowline_manager::serving::{Authorities, Pages, Server, Site, SiteParts};
use prometheus_client::registry::Registry;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use client::{Client, Pki};

fn parts() -> SiteParts {
    SiteParts {
        health: Arc::new(Health::default()),
        metrics: Arc::new(Metrics::new(Registry::default(), &BuildInfo::default())),
        authorities: Authorities::nobody(),
        reviews: None,
        pages: Pages::default(),
        clock: Arc::new(SystemClock),
        debug: None,
    }
}

fn site() -> Site {
    Site::new(&AccessConfig::default(), parts())
}

fn config(certificate: CertificateSource) -> ServingConfig {
    let address = IpAddr::from([127, 0, 0, 1]);
    ServingConfig {
        address,
        port: 0,
        certificate,
        ..ServingConfig::default()
    }
}

#[tokio::test]
async fn health_is_answered_under_a_certificate_that_clients_can_verify() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(CertificateSource::Directory(directory.path().to_owned()));
    let server = Server::bind(&config, site()).unwrap();
    let address = server.local_address().unwrap();
    let stop = CancellationToken::new();
    let run = tokio::spawn(server.run(stop.clone()));
    let client = Client::trusting(&directory.path().join("cloud-controller-manager.crt"), address);

    let (protocol, answer) = client.ask("GET", "/healthz", &[], "").await;
    assert_eq!(protocol.unwrap(), b"http/1.1");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("cache-control: no-cache, private\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("content-type: text/plain; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    assert_eq!(client.protocol(b"h2").await.unwrap(), b"h2");

    stop.cancel();
    run.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "it still listens");
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it() {
    let taken = Server::bind(&config(CertificateSource::Memory), site()).unwrap();
    let address = taken.local_address().unwrap();
    let config = ServingConfig {
        port: address.port(),
        ..config(CertificateSource::Memory)
    };
    let error = Server::bind(&config, site()).err().unwrap().to_string();
    assert!(
        error.starts_with(&format!(
            "failed to create listener: failed to listen on {address}: "
        )),
        "{error}"
    );
}

#[tokio::test]
async fn a_certificate_that_is_replaced_on_disk_is_served_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (Pki::new("old-ca"), Pki::new("new-ca"));
    let (certificate, key) = old.write(directory.path(), "tls", "localhost", &[]);
    let source = CertificateSource::Files { certificate, key };
    let server = Server::bind(&config(source), site()).unwrap();
    let address = server.local_address().unwrap();
    let run = tokio::spawn(server.run(CancellationToken::new()));
    let trusts = |pki: &Pki| Client::trusting(&pki.write_authority(directory.path()), address);
    assert!(trusts(&old).answers().await);
    assert!(!trusts(&new).answers().await);

    new.write(directory.path(), "tls", "localhost", &[]);
    // The clock stands for a moment, so that the time until the files are looked at again need not pass.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(21)).await;
    tokio::time::resume();
    let begun = tokio::time::Instant::now();
    while !trusts(&new).answers().await {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the old one is still served"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    run.abort();
}

#[tokio::test]
async fn the_end_of_the_serving_certificate_is_shown_while_it_is_served() {
    let parts = parts();
    let metrics = Arc::clone(&parts.metrics);
    let site = Site::new(&AccessConfig::default(), parts);
    let server = Server::bind(&config(CertificateSource::Memory), site).unwrap();
    let shown = || {
        let page = metrics.render().unwrap();
        let series = "credential_expires_in_seconds{credential=\"serving-certificate\"} ";
        let line = page.lines().find_map(|line| line.strip_prefix(series))?;
        line.parse::<f64>().ok()
    };
    let year = 365.0 * 86_400.0;
    let left = shown().unwrap();
    assert!((year - 3_600.0..=year).contains(&left), "{left}");
    drop(server);
    assert_eq!(shown(), None);
}
