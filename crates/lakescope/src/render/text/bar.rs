//! The time bar: where the wall time went, in parts that add up.

use super::paper::{Paper, Role, Span, span};
use crate::render::words::{self, Budget};
use model::{Millis, Part};

/// Draws the bar and, under it, what each part means.
pub fn bar(page: &mut Paper, parts: &[Part], complete: bool) {
    let parts: Vec<&Part> = words::parts(parts).collect();
    let total: i64 = parts.iter().map(|part| part.ms).sum();
    let least = if complete { "" } else { "at least " };
    let sum = format!(" {least}{}", Millis(total));
    let width = page.width().saturating_sub(2 + sum.chars().count()).clamp(10, 84);
    let mut line = vec![span(Role::Plain, "  ")];
    for (part, cells) in parts.iter().zip(cells(&parts, width)) {
        let (role, glyph) = look(part);
        line.push(span(role, glyph.to_string().repeat(cells)));
    }
    line.push(span(Role::Quiet, sum));
    page.line(&line);
    page.flow(&[span(Role::Plain, "  ")], &legend(&parts));
}

fn legend(parts: &[&Part]) -> Vec<Span> {
    let mut spans = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let (role, glyph) = look(part);
        // Each entry stays in one piece: no-break spaces inside, a plain one between.
        let text = format!("{}\u{a0}{}", Millis(part.ms), part.name).replace(' ', "\u{a0}");
        spans.push(span(role, format!("{glyph}\u{a0}")));
        spans.push(span(Role::Plain, text));
        spans.push(span(Role::Plain, if i + 1 < parts.len() { "\u{a0} " } else { "" }));
    }
    spans
}

fn look(part: &Part) -> (Role, char) {
    match Budget::of(part) {
        Budget::Wait => (Role::Wait, '█'),
        Budget::Few => (Role::Wait, '▙'),
        Budget::Compute => (Role::Compute, '▓'),
        Budget::Shuffle => (Role::Shuffle, '▒'),
        Budget::OffCpu => (Role::Shuffle, '▞'),
        Budget::Collect => (Role::Collect, '▚'),
        Budget::Driver => (Role::Driver, '░'),
        Budget::Start => (Role::Driver, '∙'),
    }
}

/// Cells for each part: at least one, together exactly `width` (largest remainders first).
fn cells(parts: &[&Part], width: usize) -> Vec<usize> {
    let total: i64 = parts.iter().map(|part| part.ms).sum();
    let exact: Vec<f64> = parts.iter().map(|p| p.ms as f64 / total.max(1) as f64 * width as f64).collect();
    let mut cells: Vec<usize> = exact.iter().map(|x| (*x as usize).max(1)).collect();
    let rest = |cells: &[usize], i: usize| exact[i] - cells[i] as f64;
    while cells.iter().sum::<usize>() != width && !cells.is_empty() {
        let short = cells.iter().sum::<usize>() < width;
        let order = |a: &usize, b: &usize| rest(&cells, *a).total_cmp(&rest(&cells, *b));
        let changed = match short {
            true => (0..cells.len()).max_by(order),
            false => (0..cells.len()).filter(|&i| cells[i] > 1).min_by(order),
        };
        match changed {
            Some(i) if short => cells[i] += 1,
            Some(i) => cells[i] -= 1,
            None => break,
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_and_nothing_vanishes() {
        let part = |ms| Part { name: String::new(), ms };
        let parts = [part(1_570), part(580), part(185), part(1)];
        let cells = cells(&parts.iter().collect::<Vec<_>>(), 60);
        assert_eq!(cells, [40, 15, 4, 1]);
    }
}
