//! The rules, the runbooks, the guide and the dashboard.

mod held_together;
mod promtool;
mod scraping;
