//! What a person does on the page: presses each button, with the mouse and with the keyboard, and sees what comes of it.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::page::browser::Browser;

/// How long the effect of a button may take. A killed manager waits for its own lease, 15 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something to look at: a server is off, and a port was added.
///
/// # Errors
///
/// If one of that does not happen.
pub async fn scene(browser: &mut Browser) -> Result<()> {
    browser.click("[data-do=\"stop-server/demo-node-2\"]").await?;
    let is_off = "document.querySelectorAll('#flows [data-layer=right] .off').length === 1 && document.querySelectorAll('#flows .failing').length === 0";
    browser
        .until("traffic goes around the server", is_off, PATIENCE)
        .await?;
    browser.click("[data-do=add-port]").await?;
    browser
        .until(
            "the new port has traffic",
            "document.querySelectorAll('#flows [data-layer=left] > g').length === 2",
            PATIENCE,
        )
        .await?;
    let is_settled = "document.querySelector('#plan-outcome').innerText.includes('settled')";
    browser
        .until("the plan is followed", is_settled, PATIENCE)
        .await?;
    let minute = "[...document.querySelectorAll('#visits .answered')].filter(it => it.getAttribute('height') > 0).length >= 30";
    browser
        .until("half a minute of traffic is there", minute, PATIENCE)
        .await
}

/// Takes back what [`scene`] did.
///
/// # Errors
///
/// If one of that does not happen.
pub async fn scene_is_over(browser: &mut Browser) -> Result<()> {
    browser.click("[data-do=remove-port]").await?;
    browser.click("[data-do=\"start-server/demo-node-2\"]").await?;
    let is_over = "document.querySelectorAll('#flows [data-layer=right] .off').length === 0 && document.querySelectorAll('#flows [data-layer=left] > g').length === 1";
    browser.until("all is as it was", is_over, PATIENCE).await
}

/// Presses every button once.
///
/// # Errors
///
/// The first thing that does not happen.
pub async fn every_button(browser: &mut Browser) -> Result<()> {
    let says = |selector: &str, text: &str| {
        format!("(document.querySelector('{selector}')?.innerText ?? '').includes('{text}')")
    };
    let port = |port: u16, is_open: bool| {
        let open =
            format!("document.querySelector('#flows [data-layer=left]').textContent.includes(':{port}')");
        if is_open { open } else { format!("!{open}") }
    };
    let has_focus = |deed: &str| format!("document.activeElement.dataset.do === '{deed}'");
    // A sentence, a button, and what must be seen after it.
    let buttons = [
        ("a port is added", "[data-do=add-port]", port(8081, true)),
        ("its plan is ticked off", "", "document.querySelectorAll('.step.done').length >= 6 && document.querySelectorAll('.step.planned, .step.running').length === 0".to_owned()),
        ("the port is removed", "[data-do=remove-port]", port(8081, false)),
        ("the focus goes to the button beside it", "", has_focus("add-port")),
        ("a server is stopped", "[data-do=\"stop-server/demo-node-2\"]", says("#nodes", "powered off, tainted")),
        ("it starts again", "[data-do=\"start-server/demo-node-2\"]", format!("!{}", says("#nodes", "tainted"))),
        ("the API breaks", "[data-do=break-api]", says("#api", "every call fails")),
        ("it is mended", "[data-do=mend-api]", says("#api", "in order")),
        ("a server is deleted", "[data-do=\"delete-server/demo-node-3\"]", format!("!{}", says("#nodes", "demo-node-3"))),
        ("a step says what it is about in words", "", "[...document.querySelectorAll('.step code')].some(it => /^delete-resource\\([a-z-]+ /.test(it.textContent)) && !document.querySelector('#waves').textContent.includes('://')".to_owned()),
        ("the focus goes to the server beside it, not to something risky", "", has_focus("stop-server/demo-node-2")),
        ("the Service is deleted", "[data-do=delete-service]", "!document.querySelector('#create').hidden && document.querySelector('#services').children.length === 0".to_owned()),
        ("the focus goes to what makes it again", "", has_focus("create-service")),
        ("it is made again", "[data-do=create-service]", port(8080, true)),
        ("the focus goes to what can be done with it", "", has_focus("add-port")),
        ("the manager is killed", "[data-do=kill-manager]", says("#manager", "is killed")),
        ("its button is off, and keeps the focus", "", format!("{} && document.activeElement.ariaDisabled === 'true'", has_focus("kill-manager"))),
        ("the notice says so", "", says("#notice", "is killed")),
        ("it leads again", "", says("#manager", "leads")),
        ("the notice says that it does", "", says("#notice", "leads again")),
        ("its button keeps the focus", "", has_focus("kill-manager")),
    ];
    for (what, button, seen) in &buttons {
        if !button.is_empty() {
            browser.click(button).await?;
        }
        browser.until(what, seen, PATIENCE).await?;
    }
    Ok(())
}

/// Deletes servers until one is left, whose button says why it is off.
///
/// # Errors
///
/// If one cannot be deleted, or if the last one can.
pub async fn last_server(browser: &mut Browser) -> Result<()> {
    let first = "document.querySelector('#servers [data-do^=delete-server]')";
    loop {
        let servers = browser
            .value("document.querySelector('#servers').children.length")
            .await?;
        if servers == 1 {
            break;
        }
        browser.click("#servers [data-do^=delete-server]").await?;
        let is_gone = format!("document.querySelector('#servers').children.length < {servers}");
        browser.until("a server is deleted", &is_gone, PATIENCE).await?;
    }
    let is_off =
        format!("{first}.ariaDisabled === 'true' && {first}.title.includes('The last server stays')");
    browser
        .until("the last server cannot be deleted", &is_off, PATIENCE)
        .await?;
    browser.value(&format!("{first}.click()")).await?;
    let is_told = "document.querySelector('#notice').innerText.includes('The last server stays')";
    browser.until("it is said why", is_told, PATIENCE).await
}

/// The buttons can be reached and pressed without a mouse.
///
/// # Errors
///
/// If one cannot, or if the focus is not seen.
pub async fn keyboard(browser: &mut Browser) -> Result<()> {
    const MANY: usize = 40;
    browser.value("document.activeElement.blur()").await?;
    for _ in 0..MANY {
        browser.press("Tab", 9).await?;
        let at = browser
            .value("document.activeElement.dataset.do ?? document.activeElement.id")
            .await?;
        if at == "break-api" {
            let outline = browser
                .value("getComputedStyle(document.activeElement).outlineStyle")
                .await?;
            ensure!(outline == "solid", "the focus cannot be seen: {outline}");
            browser.press("Enter", 13).await?;
            browser
                .until(
                    "the API breaks by keyboard",
                    "document.activeElement.dataset.do === 'mend-api'",
                    PATIENCE,
                )
                .await?;
            browser.press("Enter", 13).await?;
            return browser
                .until(
                    "it is mended, the focus still there",
                    "document.activeElement.dataset.do === 'break-api'",
                    PATIENCE,
                )
                .await;
        }
    }
    anyhow::bail!("the button `break-api` is not reached in {MANY} steps")
}

/// Nothing was asked of anybody but the demo, and nothing went wrong in the page.
///
/// # Errors
///
/// What was, or what did.
pub fn kept_to_itself(browser: &mut Browser, url: &str) -> Result<()> {
    let elsewhere: Vec<_> = browser
        .requests()
        .iter()
        .filter(|it| !it.starts_with(url) && !it.starts_with("data:") && *it != "about:blank")
        .collect();
    ensure!(elsewhere.is_empty(), "the page asked for {elsewhere:?}");
    let complaints = browser.complaints();
    ensure!(
        complaints.is_empty(),
        "the page complains: {}",
        complaints.join("\n")
    );
    Ok(())
}
