use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;

/// A client's end and what is read of it.
fn connect(buffer: usize) -> (DuplexStream, Metered<DuplexStream>) {
    let (client, server) = duplex(buffer);
    (client, Metered::new(server, Allowance::default()))
}

#[tokio::test(start_paused = true)]
async fn a_handshake_of_more_than_16_kib_is_an_error() {
    let (mut client, mut metered) = connect(1 << 20);
    client.write_all(&[0; MAX_HANDSHAKE + 1]).await.unwrap();
    let mut read = vec![0; MAX_HANDSHAKE];
    metered.read_exact(&mut read).await.unwrap();
    let error = metered.read_u8().await.unwrap_err();
    assert_eq!(error.to_string(), "the TLS handshake is too large");
}

#[tokio::test(start_paused = true)]
async fn after_the_handshake_a_client_is_read_no_faster_than_it_may_send() {
    let (mut client, mut metered) = connect(1 << 20);
    metered.has_shaken_hands();
    let (burst, second) = (BYTES.burst as usize, BYTES.per_second as usize);
    client.write_all(&vec![0; burst + 3 * second + 1]).await.unwrap();
    let begun = Instant::now();
    let mut read = vec![0; burst];
    metered.read_exact(&mut read).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let mut part = vec![0; second / 16];
    for _ in 0..3 * 16 {
        metered.read_exact(&mut part).await.unwrap();
    }
    metered.read_u8().await.unwrap();
    let took = begun.elapsed().as_millis();
    assert!((3000..3100).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up_after_20_seconds() {
    let (_client, mut metered) = connect(16);
    let begun = Instant::now();
    let error = metered.write_all(&[0; 17]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(begun.elapsed().as_secs(), STALL_TIME.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_its_time_is_not_given_up() {
    let (mut client, mut metered) = connect(16);
    let write = tokio::spawn(async move { metered.write_all(&[0; 64]).await });
    let mut read = [0; 16];
    for _ in 0..4 {
        tokio::time::sleep(STALL_TIME - Duration::from_secs(1)).await;
        client.read_exact(&mut read).await.unwrap();
    }
    write.await.unwrap().unwrap();
}
