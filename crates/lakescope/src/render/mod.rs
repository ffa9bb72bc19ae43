//! A report for people and programs: text, Markdown, HTML, JSON.
//!
//! Every form tells the same story in the same words ([`diagnose::telling`]); each escapes what comes from
//! the log in its own way. Nothing here reads or prints.

mod compare;
mod html;
mod json;
mod list;
mod markdown;
mod plan;
mod shuffle;
mod text;

pub use compare::{compare_markdown, compare_text};
#[cfg(feature = "serve")]
pub use html::{Row, applications_html};
pub use html::{compare_html, html};
pub use json::json;
pub use list::{list_html, list_markdown, list_text};
pub use markdown::markdown;
pub use plan::{labelled_text, plan_text, queries_text};
pub use shuffle::{heap_too_small, shuffle_text};
pub use text::text;
pub use words::{Money, clean, core_time, one_line};

use diagnose::telling as words;

/// How a report is shown.
#[derive(Clone, Debug)]
pub struct Look {
    /// Everything, not one screen only.
    pub all: bool,
    /// Columns of a text.
    pub width: usize,
    /// Price of core time, where set.
    pub money: Option<Money>,
}

impl Look {
    /// One screen, with the price that is set.
    #[must_use]
    pub fn of(config: &diagnose::Config) -> Self {
        let currency = config.currency.clone();
        let money = config.core_hour_price.map(|per_core_hour| Money { per_core_hour, currency });
        Self { money, ..Self::default() }
    }
}

impl Default for Look {
    fn default() -> Self {
        Self { all: false, width: 100, money: None }
    }
}
