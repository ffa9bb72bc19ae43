//! How a report is said, the same in every form (text, page, API): places, numbers, certainty,
//! savings; its order ([`chapters`]), and names from a log made harmless ([`clean`]).

mod clean;
mod story;

pub use clean::{clean, clean_report, one_line};
pub use story::{Chapter, chapters, quiet_roots};

use model::{
    Application, Bytes, Confidence, Count, Evidence, Factor, Finding, Metric, Millis, Part, PasteKind, RemedyKind,
    Report, Scope, Severity, Share, Stage, Value,
};

/// What an hour of one core costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Money {
    /// Price of one core for an hour.
    pub per_core_hour: f64,
    /// A sign, or an ISO code: `$`, `USD`.
    pub currency: String,
}

impl Money {
    /// What so much core time costs: `$18.40`.
    #[must_use]
    pub fn of(&self, core_ms: i64) -> String {
        let amount = self.amount(core_ms);
        match self.currency.as_str() {
            "USD" => format!("${amount:.2}"),
            "EUR" => format!("€{amount:.2}"),
            "GBP" => format!("£{amount:.2}"),
            sign if !sign.contains(char::is_alphabetic) => format!("{sign}{amount:.2}"),
            other => format!("{amount:.2} {}", one_line(other)),
        }
    }

    fn amount(&self, core_ms: i64) -> f64 {
        core_ms as f64 / 3_600_000.0 * self.per_core_hour
    }
}

/// How sure, in the one word that is shown.
#[must_use]
pub fn certainty(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => "certain",
        Confidence::Medium => "likely",
        Confidence::Low => "hint",
    }
}

/// How bad, in a word.
#[must_use]
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
        Severity::Info => "info",
    }
}

/// What kind of change a remedy is.
#[must_use]
pub fn remedy(kind: RemedyKind) -> &'static str {
    match kind {
        RemedyKind::Code => "code",
        RemedyKind::Sql => "SQL",
        RemedyKind::Layout => "table layout",
        RemedyKind::Conf => "setting",
        RemedyKind::Compute => "compute",
        RemedyKind::Ops => "operation",
    }
}

/// What a paste was taken for.
#[must_use]
pub fn paste(kind: PasteKind) -> &'static str {
    match kind {
        PasteKind::Plan => "a query plan",
        PasteKind::Stack => "a stack trace or log excerpt",
        PasteKind::StageMetrics => "figures of a stage",
        PasteKind::Streaming => "progress of a streaming query",
        PasteKind::Question => "a question in words",
    }
}

/// Where a finding holds: `stage 14 · SQL 3 · SortMergeJoin on customer_id · orders.py:41`.
#[must_use]
pub fn place(scope: &Scope) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(query) = &scope.query {
        parts.push(format!("stream {query}"));
    }
    match (scope.stage, scope.attempt.unwrap_or_default()) {
        (Some(stage), 0) => parts.push(format!("stage {stage}")),
        (Some(stage), attempt) => parts.push(format!("stage {stage}, attempt {}", attempt + 1)),
        (None, _) => parts.extend(listed("stage", &scope.stages)),
    }
    if let (None, Some(job)) = (scope.stage, scope.job) {
        parts.push(format!("job {job}"));
    }
    match scope.sql {
        Some(sql) => parts.push(format!("SQL {sql}")),
        None => parts.extend(listed("SQL", &scope.sqls)),
    }
    parts.extend(scope.node.clone());
    parts.extend(scope.task.map(|task| format!("TID {task}")));
    parts.extend(scope.executor.as_ref().map(|executor| format!("executor {executor}")));
    parts.extend(listed("RDD", &scope.rdds));
    parts.extend(scope.source_line.clone());
    parts.iter().map(|part| one_line(part)).collect()
}

/// The stage whose tasks show a finding when they are drawn: the last attempt where none is named.
/// `None` when there is none, or its times are not the point: they cost nothing and are short.
#[must_use]
pub fn drawn_stage<'a>(finding: &Finding, app: &'a Application) -> Option<&'a Stage> {
    const LONG_MS: i64 = 1_000;
    let id = finding.scope.stage.or_else(|| finding.scope.stages.first().copied())?;
    let attempt = match finding.scope.attempt {
        Some(attempt) => attempt,
        None => app.stages.iter().filter(|s| s.id == id).map(|s| s.attempt).max()?,
    };
    let stage = app.stage(id, attempt).filter(|stage| stage.tasks.len() > 1)?;
    let tells = finding.estimate.is_some() || stage.quantiles(Metric::DurationMs).max >= LONG_MS;
    tells.then_some(stage)
}

/// The first ids of a list: `stages 3, 5, 8 and 41 more`.
fn listed<T: ToString>(what: &str, ids: &[T]) -> Option<String> {
    const SHOWN: usize = 3;
    let plural = if what == "stage" && ids.len() > 1 { "s" } else { "" };
    let shown = ids.iter().take(SHOWN).map(T::to_string).collect::<Vec<_>>().join(", ");
    match ids.len() {
        0 => None,
        1..=SHOWN => Some(format!("{what}{plural} {shown}")),
        n => Some(format!("{what}{plural} {shown} and {} more", n - SHOWN)),
    }
}

/// Evidence to show. What the estimate says is said with the saving, not once more.
pub fn evidence(finding: &Finding) -> impl Iterator<Item = &Evidence> {
    let said = |metric: &str| metric == "wall_ms" || metric.starts_with("saved_ms");
    let empty = |value: &Value| match value {
        Value::Text(text) => text.is_empty(),
        Value::Texts(texts) => texts.is_empty(),
        Value::Int(_) | Value::Float(_) => false,
    };
    finding.evidence.iter().filter(move |e| !said(&e.metric) && !empty(&e.value))
}

/// A line of evidence as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What was measured.
    pub label: String,
    /// The value, or the values of a series of quantiles.
    pub value: String,
    /// The line it crossed: `over 30 s`, `under 3 MiB`.
    pub limit: Option<String>,
    /// Where it stands.
    pub location: String,
    /// Whether it is a series of quantiles.
    pub series: bool,
}

/// Evidence in lines: quantiles of one thing stand together in one.
#[must_use]
pub fn shown(finding: &Finding) -> Vec<Shown> {
    const SERIES: usize = 4;
    let all: Vec<&Evidence> = evidence(finding).collect();
    let mut lines = Vec::new();
    for run in all.chunk_by(|a, b| stem(a).is_some() && stem(a) == stem(b) && a.location == b.location) {
        match stem(run[0]) {
            Some((name, _)) if run.len() >= SERIES => lines.push(series(name, run)),
            _ => lines.extend(run.iter().map(|e| line(e))),
        }
    }
    lines
}

fn line(evidence: &Evidence) -> Shown {
    Shown {
        label: label(evidence),
        value: value(evidence),
        limit: threshold(evidence),
        location: one_line(&evidence.location),
        series: false,
    }
}

fn series(name: &str, run: &[&Evidence]) -> Shown {
    let values: Vec<String> = run
        .iter()
        .map(|e| format!("{} {}", spelled(e.metric[name.len()..].trim_start_matches('_')), value(e)))
        .collect();
    let of_all = Evidence { metric: name.to_owned(), ..run[0].clone() };
    Shown { label: label(&of_all), value: values.join(" · "), limit: None, series: true, ..line(run[0]) }
}

/// What a quantile is of, and its unit: `gc_ms` of `gc_ms_p75`.
fn stem(evidence: &Evidence) -> Option<(&str, &str)> {
    const QUANTILES: [&str; 6] = ["_min", "_p25", "_median", "_p75", "_max", "_sum"];
    let name = QUANTILES.iter().find_map(|quantile| evidence.metric.strip_suffix(quantile))?;
    evidence.threshold.is_none().then_some((name, evidence.unit.as_str()))
}

/// The numbers that say most, for one line: what crossed a line comes first, a zero says nothing.
#[must_use]
pub fn telling(finding: &Finding, most: usize) -> Vec<String> {
    const SHORT: usize = 60;
    let zero = |e: &Evidence| matches!(e.value, Value::Int(0)) || e.value == Value::Float(0.0);
    let mut lines: Vec<Shown> = Vec::new();
    for crossed in [true, false] {
        let some = evidence(finding).filter(|e| e.threshold.is_some() == crossed && !zero(e));
        lines.extend(some.filter(|e| crossed || !quiet(e)).map(line));
    }
    lines.retain(|line| line.value.chars().count() <= SHORT);
    lines.iter().take(most).map(|line| glued(&format!("{} {}", line.label, line.value))).collect()
}

/// A quantile that is rarely the point.
fn quiet(evidence: &Evidence) -> bool {
    ["_min", "_p25", "_sum"].iter().any(|quantile| evidence.metric.ends_with(quantile))
}

/// Name of a measured thing: `shuffle_read_bytes_max` reads `shuffle read max`.
#[must_use]
pub fn label(evidence: &Evidence) -> String {
    let mut words: Vec<&str> = evidence.metric.split('_').filter(|w| !w.is_empty()).collect();
    if matches!(evidence.unit.as_str(), "ms" | "bytes") && words.len() > 1 {
        words.retain(|word| *word != evidence.unit);
    }
    match words[..] {
        ["ms"] => return "time".to_owned(),
        ["bytes"] => return "size".to_owned(),
        _ => {}
    }
    let said: Vec<&str> = words.into_iter().map(spelled).collect();
    one_line(&said.join(" "))
}

fn spelled(word: &str) -> &str {
    match word {
        "gc" => "GC",
        "cpu" => "CPU",
        "io" => "I/O",
        "sql" => "SQL",
        "aqe" => "AQE",
        "jvm" => "JVM",
        "p25" => "P25",
        "p75" => "P75",
        "p95" => "P95",
        other => other,
    }
}

/// The value as people say it, by its unit.
#[must_use]
pub fn value(evidence: &Evidence) -> String {
    match &evidence.value {
        Value::Int(n) => number(*n as f64, unit(evidence)),
        Value::Float(x) => number(*x, unit(evidence)),
        Value::Text(text) => one_line(text),
        Value::Texts(texts) => one_line(&texts.join(", ")),
    }
}

/// The unit, left out where the label says it already (`tasks`, `task count`, `data sets`).
fn unit(evidence: &Evidence) -> &str {
    let unit = evidence.unit.as_str();
    let measure = matches!(unit, "" | "ms" | "bytes" | "ratio" | "share");
    let label = format!(" {} ", evidence.metric.replace('_', " "));
    let said = |noun: &str| label.contains(&format!(" {noun} "));
    if !measure && (said(unit) || said(singular(unit))) { "" } else { unit }
}

/// The line that the value crossed, in the value's own unit, and from which side.
#[must_use]
pub fn threshold(evidence: &Evidence) -> Option<String> {
    let limit = evidence.threshold?;
    let side = match evidence.value {
        Value::Int(value) if (value as f64) < limit => "under",
        Value::Float(value) if value < limit => "under",
        _ => "over",
    };
    Some(format!("{side} {}", number(limit, unit(evidence))))
}

/// `task` of `tasks`, `batch` of `batches`; other words as they are.
fn singular(plural: &str) -> &str {
    match plural.strip_suffix("es") {
        Some(stem) if stem.ends_with("ch") || stem.ends_with("sh") => stem,
        _ => plural.strip_suffix('s').filter(|stem| stem.len() > 2 && !plural.contains('/')).unwrap_or(plural),
    }
}

fn number(x: f64, unit: &str) -> String {
    match unit {
        "ms" => Millis(x as i64).to_string(),
        "bytes" if x >= 0.0 => Bytes(x as u64).to_string(),
        "bytes" => counted(x, ""),
        "ratio" => Factor(x).to_string(),
        "share" => Share(x).to_string(),
        _ => counted(x, unit),
    }
}

/// A plain number with its unit.
fn counted(x: f64, unit: &str) -> String {
    let figure = match x.fract() == 0.0 && x >= 0.0 {
        true => Count(x as u64).to_string(),
        false => Factor(x).to_string().trim_end_matches([' ', '×']).to_owned(),
    };
    let unit = if x == 1.0 { singular(unit) } else { unit };
    if matches!(unit, "" | "count") { figure } else { format!("{figure} {}", one_line(unit)) }
}

/// What mending a finding saves, in words and as the one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// `−2 m 10 s`; `None` when the run would not be shorter.
    pub time: Option<String>,
    /// `1 m 40 s to 2 m 41 s`, or the core time where no run time is saved.
    pub range: String,
    /// ` of 8 m 31 s, $0.40`: the whole and the price.
    pub beside: String,
}

/// Words for the estimate of a finding; `None` when nothing is known.
#[must_use]
pub fn saved(finding: &Finding, wall_ms: i64, money: Option<&Money>) -> Option<Saved> {
    let estimate = finding.estimate.as_ref()?;
    let cost = money
        .filter(|m| m.amount(estimate.saved_core_ms) >= 0.005)
        .map(|m| format!(", {}", m.of(estimate.saved_core_ms)));
    let cost = cost.unwrap_or_default();
    if estimate.saved_ms_high <= 0 {
        let core = core_time(estimate.saved_core_ms);
        return (estimate.saved_core_ms > 0).then(|| Saved {
            time: None,
            range: format!("no effect on the run time, {core}"),
            beside: cost,
        });
    }
    let (low, high) = (Millis(estimate.saved_ms_low).to_string(), Millis(estimate.saved_ms_high).to_string());
    let range = match low == high || estimate.saved_ms_low <= 0 {
        true => format!("up to {high}"),
        false => format!("{low} to {high}"),
    };
    let whole = if wall_ms > 0 { format!(" of {}", Millis(wall_ms)) } else { String::new() };
    Some(Saved { time: Some(Millis(-estimate.saved_ms.max(1)).to_string()), range, beside: format!("{whole}{cost}") })
}

/// Core time: `3.2 core-hours`, `41 core-seconds`.
#[must_use]
pub fn core_time(ms: i64) -> String {
    let figure = |x: f64| Factor(x).to_string().trim_end_matches([' ', '×']).to_owned();
    match ms {
        ..60_000 => format!("{} core-seconds", figure(ms as f64 / 1e3)),
        60_000..3_600_000 => format!("{} core-minutes", figure(ms as f64 / 6e4)),
        _ => format!("{} core-hours", figure(ms as f64 / 3.6e6)),
    }
}

/// The five places of the time bar, by what a part is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Budget {
    Wait,
    Few,
    Compute,
    Shuffle,
    OffCpu,
    Collect,
    Driver,
    Start,
}

impl Budget {
    /// Reads it from a part's name.
    #[must_use]
    pub fn of(part: &Part) -> Self {
        let name = part.name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|w| name.contains(w));
        match () {
            () if has(&["garbage", "gc"]) => Self::Collect,
            () if has(&["start"]) => Self::Start,
            () if has(&["off the cpu"]) => Self::OffCpu,
            () if has(&["few"]) => Self::Few,
            () if has(&["shuffle", "i/o", "fetch", "reading", "writing"]) => Self::Shuffle,
            () if has(&["comput", "run", "busy", "useful"]) => Self::Compute,
            () if has(&["waiting", "tail", "failed", "killed", "lost", "speculat", "one task"]) => Self::Wait,
            () => Self::Driver,
        }
    }
}

/// Parts that are there, in the order given.
pub fn parts(parts: &[Part]) -> impl Iterator<Item = &Part> {
    parts.iter().filter(|part| part.ms > 0)
}

/// Core time given and used, ms: slots × time, and the run time of the tasks.
#[must_use]
pub fn core_total_ms(report: &Report) -> i64 {
    let parts: i64 = report.summary.core_time.iter().map(|part| part.ms).sum();
    if parts > 0 { parts } else { (report.summary.slots * report.application.wall_ms as f64) as i64 }
}

/// Share of the slot time that tasks used; `None` when slots are not known.
#[must_use]
pub fn busy(report: &Report) -> Option<f64> {
    let total = core_total_ms(report);
    (total > 0).then(|| (report.summary.run_ms as f64 / total as f64).clamp(0.0, 1.0))
}

/// Facts of the application in the order of interest: label and value; an empty label where the
/// value speaks for itself.
#[must_use]
pub fn facts(report: &Report, money: Option<&Money>) -> Vec<(&'static str, String)> {
    let app = &report.application;
    if let Some(kind) = app.pasted {
        return vec![("read as", paste(kind).to_owned())];
    }
    let mut facts = Vec::new();
    if !app.id.is_empty() && app.id != app.name {
        facts.push(("", one_line(&app.id)));
    }
    if !app.spark_version.is_empty() {
        let photon = if app.photon { ", Photon" } else { "" };
        facts.push(("Spark", format!("{}{photon}", one_line(&app.spark_version))));
    }
    if app.wall_ms > 0 {
        let least = if app.complete { "" } else { "at least " };
        facts.push(("ran", format!("{least}{}", Millis(app.wall_ms))));
    }
    if report.summary.slots > 0.0 {
        let shown = slots(report.summary.slots);
        let label = match shown.as_str() {
            "1" => "slot",
            _ if shown.contains('.') => "slots on average",
            _ => "slots",
        };
        facts.push((label, shown));
    }
    if app.counts.tasks > 0 {
        let label = if app.counts.tasks == 1 { "task" } else { "tasks" };
        facts.push((label, Count(app.counts.tasks).to_string()));
    }
    if app.counts.task_attempts_failed > 0 {
        let label = if app.counts.task_attempts_failed == 1 { "failed attempt" } else { "failed attempts" };
        facts.push((label, Count(app.counts.task_attempts_failed).to_string()));
    }
    facts.extend(busy(report).map(|share| ("of core time used", Share(share).to_string())));
    facts.extend(money.map(|money| ("cost", money.of(core_total_ms(report)))));
    facts
}

/// A sentence as it is printed: with a capital, unless it begins with a name.
#[must_use]
pub fn capital(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default().trim_end_matches(',');
    if first.is_empty() || !first.chars().all(|c| c.is_ascii_lowercase()) {
        return text.to_owned();
    }
    format!("{}{}", first[..1].to_ascii_uppercase(), &text[1..])
}

/// A remedy without the `Or` that its label says already.
#[must_use]
pub fn alternative(text: &str) -> String {
    text.strip_prefix("Or ").map_or_else(|| text.to_owned(), capital)
}

/// Slots: a whole number, or the time average with one digit.
#[must_use]
pub fn slots(slots: f64) -> String {
    if (slots - slots.round()).abs() < 0.05 { Count(slots.round() as u64).to_string() } else { format!("{slots:.1}") }
}

/// A remark about findings that are not shown: `41 more of SKEW_KEY`.
#[must_use]
pub fn more(more: &[(String, u32)]) -> Option<String> {
    let each: Vec<String> = more.iter().map(|(id, n)| format!("{n} more of {}", one_line(id))).collect();
    (!each.is_empty()).then(|| each.join(", "))
}

/// Joins numbers and their units with no-break spaces, so that no line breaks inside `12 m 15 s`.
#[must_use]
pub fn glued(text: &str) -> String {
    const UNITS: [&str; 19] =
        ["ms", "s", "m", "h", "d", "B", "KiB", "MiB", "GiB", "TiB", "PiB", "KB", "MB", "GB", "TB", "×", "%", "M", "G"];
    let mut out = String::with_capacity(text.len() + 8);
    let mut words = text.split(' ').peekable();
    let mut before_unit = false;
    while let Some(word) = words.next() {
        out.push_str(word);
        let Some(next) = words.peek() else { break };
        let bare = next.trim_end_matches([',', '.', ';', ':', ')', '!', '?']);
        let ends_in_digit = word.ends_with(|c: char| c.is_ascii_digit());
        let unit_follows = ends_in_digit && UNITS.contains(&bare);
        let goes_on = before_unit && matches!(word, "m" | "h" | "d") && next.starts_with(|c: char| c.is_ascii_digit());
        let factor = word == "×" && before_unit;
        out.push(if unit_follows || (goes_on && !factor) { '\u{a0}' } else { ' ' });
        before_unit = unit_follows;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(metric: &str, value: impl Into<Value>, unit: &str) -> Evidence {
        Evidence { metric: metric.into(), value: value.into(), unit: unit.into(), ..Evidence::default() }
    }

    #[test]
    fn evidence_reads_as_words_and_numbers() {
        for (metric, given, unit, shown) in [
            ("shuffle_read_bytes_max", Value::Int(41_017_000_000), "bytes", "shuffle read max 38.2 GiB"),
            ("duration_ms_p75", Value::Int(41_000), "ms", "duration P75 41 s"),
            ("max_over_median", Value::Float(40.04), "ratio", "max over median 40 ×"),
            ("gc_share", Value::Float(0.142), "share", "GC share 14 %"),
            ("tasks", Value::Int(8_413), "tasks", "tasks 8\u{202f}413"),
            ("exit_code", Value::Int(137), "", "exit code 137"),
            ("error_class", Value::Text("A\nB".into()), "", "error class A B"),
            ("rate", Value::Float(1.5), "rows/s", "rate 1.5 rows/s"),
            ("task_count", Value::Int(8), "tasks", "task count 8"),
            ("data_sets", Value::Int(2), "data sets", "data sets 2"),
            ("lost", Value::Int(1), "batches", "lost 1 batch"),
            ("ms", Value::Int(69_000), "ms", "time 1 m 09 s"),
            ("threshold", Value::Int(-1), "bytes", "threshold -1"),
        ] {
            let evidence = evidence(metric, given, unit);
            assert_eq!(format!("{} {}", label(&evidence), value(&evidence)), shown);
        }
    }

    #[test]
    fn limits_say_from_which_side_they_were_crossed() {
        for (value, said) in [(Value::Int(312 << 10), "under 10 MiB"), (Value::Int(20 << 20), "over 10 MiB")] {
            let given = Evidence { threshold: Some(f64::from(10 << 20)), ..evidence("side", value, "bytes") };
            assert_eq!(threshold(&given).as_deref(), Some(said));
        }
    }

    #[test]
    fn places_name_what_is_known() {
        let scope = Scope { stage: Some(14), attempt: Some(1), sql: Some(3), ..Scope::default() };
        assert_eq!(place(&scope), ["stage 14, attempt 2", "SQL 3"]);
        let scope = Scope { stages: vec![1, 2, 3, 4, 5], ..Scope::default() };
        assert_eq!(place(&scope), ["stages 1, 2, 3 and 2 more"]);
    }

    #[test]
    fn numbers_stay_with_their_units() {
        assert_eq!(glued("ran 12 m 15 s, or 3 of 4"), "ran 12\u{a0}m\u{a0}15\u{a0}s, or 3 of 4");
        assert_eq!(glued("read 40 × the data"), "read 40\u{a0}× the data");
        assert_eq!(glued("38.2 GiB, then"), "38.2\u{a0}GiB, then");
    }

    #[test]
    fn money_by_currency() {
        let money = Money { per_core_hour: 0.05, currency: "USD".into() };
        assert_eq!(money.of(368 * 3_600_000), "$18.40");
        assert_eq!(Money { currency: "CZK".into(), ..money }.of(3_600_000), "0.05 CZK");
    }
}
