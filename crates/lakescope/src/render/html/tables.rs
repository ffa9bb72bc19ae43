//! What stands below the findings: core time, other slot counts, remarks about the input.

use super::{charts, escaped, say};
use crate::render::{Look, words};
use model::{Millis, Report, Share};

/// Where the core time went, beside what other choices would have given.
pub fn tables(report: &Report, look: &Look) -> String {
    let cards = [counterfactuals(report, look), core_time(report, look)];
    match cards.iter().all(String::is_empty) {
        true => String::new(),
        false => format!("<div class=\"pair\">{}</div>", cards.concat()),
    }
}

/// What could not be read.
pub fn warnings(report: &Report) -> String {
    if report.warnings.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for warning in &report.warnings {
        rows.push_str(&format!(
            "<p>{}<span>{} <code>{}</code></span></p>",
            charts::icon(charts::TRIANGLE),
            say(&warning.text),
            escaped(&warning.code)
        ));
    }
    format!("<section class=\"card about\"><div class=\"hd\"><h2>About the input</h2></div>{rows}</section>")
}

fn core_time(report: &Report, look: &Look) -> String {
    let total: i64 = report.summary.core_time.iter().map(|part| part.ms).sum();
    if total <= 0 {
        return String::new();
    }
    let most = report.summary.core_time.iter().map(|part| part.ms).max().unwrap_or(1);
    let mut rows = String::new();
    for part in words::parts(&report.summary.core_time) {
        let money = look.money.as_ref().map(|m| format!("<td class=\"num dim\">{}</td>", escaped(&m.of(part.ms))));
        rows.push_str(&format!(
            "<tr><td>{}</td><td class=\"bar\">{}</td><td class=\"num\">{}</td><td class=\"num dim\">{}</td>{}</tr>",
            say(&part.name),
            bar(part.ms, most, "cpu"),
            say(&words::core_time(part.ms)),
            say(&Share(part.ms as f64 / total as f64).to_string()),
            money.unwrap_or_default()
        ));
    }
    let sum = say(&words::core_time(total));
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>Where the core time went</h2>\
         <span class=\"dim\">slots × time, {sum}</span></div><div class=\"wide\"><table>{rows}</table></div></section>"
    )
}

fn counterfactuals(report: &Report, look: &Look) -> String {
    let others = &report.summary.counterfactuals;
    let wall = report.application.wall_ms.max(1);
    let Some(most) = others.iter().map(|o| o.wall_ms).max() else { return String::new() };
    let mut rows = String::new();
    for other in others {
        let change = (other.wall_ms - wall) as f64 / wall as f64;
        let change_text = match change {
            c if c.abs() < 0.000_05 => "as it ran".to_owned(),
            c if c > 0.0 => format!("+{}", Share(c)),
            c => format!("−{}", Share(-c)),
        };
        let money =
            look.money.as_ref().map(|m| format!("<td class=\"num dim\">{}</td>", escaped(&m.of(other.core_ms))));
        rows.push_str(&format!(
            "<tr><td>{}</td><td class=\"bar\">{}</td><td class=\"num\">{}</td><td class=\"num dim\">{}</td>\
             <td class=\"num\">{}</td>{}</tr>",
            say(&other.change),
            bar(other.wall_ms, most, if change < 0.0 { "cpu" } else { "driver" }),
            say(&Millis(other.wall_ms).to_string()),
            say(&change_text),
            say(&words::core_time(other.core_ms)),
            money.unwrap_or_default()
        ));
    }
    let fit = report.summary.model.map(|m| format!("the model is {} off this run", Share(m.error)));
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>What if</h2><span class=\"dim\">{}</span></div>\
         <div class=\"wide\"><table><tr><th>Change</th><th></th><th class=\"num\">Run time</th><th></th>\
         <th class=\"num\">Core time</th>{}</tr>{rows}</table></div></section>",
        fit.map(|f| say(&f)).unwrap_or_default(),
        if look.money.is_some() { "<th class=\"num\">Cost</th>" } else { "" }
    )
}

fn bar(value: i64, most: i64, class: &str) -> String {
    let share = value as f64 / most.max(1) as f64 * 100.0;
    format!("<i class=\"{class}\" style=\"width:{share:.1}%\"></i>")
}
