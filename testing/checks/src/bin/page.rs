//! `page DEMO PICTURES`: drives the page of this demo program, and writes the pictures into this folder.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bowline_checks::page::browser::Browser;
use bowline_checks::page::demo::Demo;
use bowline_checks::page::{pictures, visit};

/// The clouds whose page is looked at; in the first one every button is pressed.
const CLOUDS: [&str; 4] = ["cloudscale", "cloudstack", "openstack", "phoenixnap"];

/// How long a story may take.
const STORY: Duration = Duration::from_secs(90);

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let demo = words.next().context("which demo?")?;
    let folder = words.next().context("where to put the pictures?")?;
    let program = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    for (index, cloud) in CLOUDS.into_iter().enumerate() {
        let mut browser = Browser::start(&program).await?;
        let demo = Demo::start(Path::new(&demo), cloud).await?;
        let result = look(&mut browser, demo.url(), (index == 0).then(|| Path::new(&folder))).await;
        browser.close().await;
        result.with_context(|| format!("the page of {cloud}"))?;
        say(&format!("{cloud}: the page does what it says"));
    }
    Ok(())
}

async fn look(browser: &mut Browser, url: &str, folder: Option<&Path>) -> Result<()> {
    browser.look(1280, 860, "light").await?;
    browser.open(url).await?;
    let is_told = "document.body?.dataset.drawn === 'true' && document.querySelector('[data-do=add-port]')?.ariaDisabled === 'false'";
    browser
        .until("the buttons work after the story", is_told, STORY)
        .await?;
    let has_traffic = "document.querySelector('#flows [data-layer=left]').children.length > 0";
    browser.until("there is traffic", has_traffic, STORY).await?;
    if let Some(folder) = folder {
        visit::scene(browser).await?;
        pictures::make(browser, folder).await?;
        browser.look(1280, 860, "light").await?;
        visit::scene_is_over(browser).await?;
        visit::keyboard(browser).await?;
        visit::every_button(browser).await?;
        visit::last_server(browser).await?;
    }
    visit::kept_to_itself(browser, url)
}

#[expect(clippy::print_stdout, reason = "where a program says how it goes")]
fn say(text: &str) {
    println!("{text}");
}
