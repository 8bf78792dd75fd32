//! The program: prints its base URL, serves, and ends on SIGTERM.

use bowline_kit::program::Program;

#[tokio::test]
async fn program_prints_its_url_and_serves() {
    let arguments = "--servers 3 --token secret --zone lpg2 --data-plane on --latency 1";
    let program = Program::start(env!("CARGO_BIN_EXE_cloudscale-sim"), arguments).await;
    for (token, status, count) in [("secret", "200", 3), ("other", "401", 0)] {
        let header = format!("authorization: Bearer {token}\r\n");
        let answer = program.exchange("GET /v1/servers", &header, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert_eq!(answer.matches("ssh_host_keys").count(), count);
        assert_eq!(answer.contains(r#""slug":"lpg2""#), count > 0);
    }
    program.stop("-TERM").await;
}
