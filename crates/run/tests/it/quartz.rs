//! Quartz expressions: the fire times of the Java library, errors, and properties.
//!
//! `quartz.tsv` has been made by the library: all kinds of expressions, daylight changes above all.

use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use run::quartz::{Cron, CronError};

const OWN: &str = include_str!("quartz.tsv");

/// Start of the rows of the shared table.
const SHARED_START: &str = "2026-03-20T09:46:40Z";

const ZONES: [&str; 6] =
    ["UTC", "Europe/Prague", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu"];

/// Checks a row: what the library found, time after time.
fn check(zone: &str, expression: &str, start: &str, found: &[&str]) -> Result<(), String> {
    let failed = |why: String| Err(format!("{zone} {expression:?} after {start}: {why}"));
    let cron = match (Cron::parse(expression), found) {
        (Err(_), ["ERR"]) => return Ok(()),
        (Err(error), _) => return failed(error.to_string()),
        (Ok(_), ["ERR"]) => return failed("is no error".into()),
        (Ok(cron), _) => cron,
    };
    let zone = TimeZone::get(zone).unwrap();
    let mut time: Timestamp = start.parse().unwrap();
    for expected in found {
        let expected: Option<Timestamp> = (*expected != "none").then(|| expected.parse().unwrap());
        let next = cron.next_after(time, &zone);
        if next != expected {
            return failed(format!("after {time} it fires at {next:?}, not at {expected:?}"));
        }
        time = next.unwrap_or(time);
    }
    Ok(())
}

fn assert_none(wrong: &[String], rows: usize) {
    assert!(wrong.is_empty(), "{} of {rows} rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn fires_when_quartz_does() {
    let rows: Vec<Vec<&str>> =
        OWN.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    assert!(rows.len() > 200, "{} rows", rows.len());
    let wrong: Vec<String> = rows.iter().filter_map(|row| check(row[0], row[1], row[2], &row[3..]).err()).collect();
    assert_none(&wrong, rows.len());
}

#[test]
fn fires_as_in_the_shared_table() {
    let text = testkit::shared().map(|shared| std::fs::read_to_string(shared.join("data/quartz-oracle.tsv")));
    let Some(Ok(text)) = text else {
        eprintln!("skipped: quartz-oracle.tsv is not there (LAKESCOPE_SHARED)");
        return;
    };
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert!(!rows.is_empty());
    let wrong: Vec<String> =
        rows.iter().filter_map(|row| check(row[0], row[1], SHARED_START, &row[2..]).err()).collect();
    assert_none(&wrong, rows.len());
}

#[test]
fn errors_name_the_field_the_text_and_what_is_allowed() {
    for (expression, message) in [
        ("0 0 25 * * ?", "hours: 25 is not in 0-23"),
        ("0 0 12 ? FOO *", "month: FOO is not in 1-12 or JAN-DEC"),
        ("0 0 12 ? * 0", "day of week: 0 is not in 1-7 or SUN-SAT"),
        ("0 0 12 * * ? 1969", "year: 1969 is not in 1970-2199"),
        ("0 0 12 * * ? 2030-2029", "year: 2030-2029 ends before it begins"),
        ("0 5- * * * ?", "minutes: a value is missing; allowed is 0-59"),
        ("*/60 * * * * ?", "seconds: a step of 60 is more than 59"),
        ("0/x * * * * ?", "seconds: x after / is not a number"),
        ("0 ? * * * ?", "minutes: ? is for day of month or day of week, and alone"),
        ("0 0 12 L-31 * ?", "day of month: L-31 is not L, LW, or L-0 to L-30"),
        ("0 0 12 L,5 * ?", "day of month: L cannot be in a list, L,5"),
        ("0 0 12 ? * 6#6", "day of week: 6 after # is not in 1-5"),
        ("0 0 12 ? * MON-6", "day of week: MON-6 is not of two numbers or two names of 3 letters"),
        ("0 0 12 ? * MON-FRY", "day of week: FRY is not in 1-7 or SUN-SAT"),
        ("0 0 12 * * *", "day of month * and day of week *: exactly one of them has to be ?"),
        ("0 0 12 ? * ?", "day of month ? and day of week ?: exactly one of them has to be ?"),
        ("0 0 1\n2 * * ?", "hours: 1\\n2 is not in 0-23"),
    ] {
        assert_eq!(Cron::parse(expression).unwrap_err().to_string(), message, "{expression:?}");
    }
    assert_eq!(Cron::parse("0 0 12 * *"), Err(CronError::Count(5)));
    assert_eq!(Cron::parse("0 0 12 * * ? * *"), Err(CronError::Count(8)));
    assert_eq!(Cron::parse(" "), Err(CronError::Count(0)));
}

/// Quartz takes all of them, and fires at other times than written.
#[test]
fn what_quartz_misreads_is_an_error() {
    for expression in [
        "5x * * * * ?",
        "*5 * * * * ?",
        "99 * * * * ?",
        "*/0 * * * * ?",
        "/0 * * * * ?",
        "L * * * * ?",
        "1,,2 * * * * ?",
        "1, * * * * ?",
        ", * * * * ?",
        "5-10-15 * * * * ?",
        "5-10/2/2 * * * * ?",
        "* * * 0W * ?",
        "* * * 5-0 * ?",
        "* * * 98 * 2",
        "* * * ?x * 2",
        "* * * ?,5 * 2",
        "* * * L-W * ?",
        "* * * LWx * ?",
        "* * * 1W,15W * ?",
        "* * * 15W,20 * ?",
        "* * * 10-15W * ?",
        "* * * * MON ?",
        "* * * * JAN/2 ?",
        "* * * ? * MON/2",
        "* * * ? * MON-FRI/2",
        "* * * ? * MONDAY-FRIDAY",
        "* * * ? * MONTAG",
        "* * * ? * MON,FRI#2",
        "* * * ? * 2-6#3",
        "* * * ? * 2-6L",
        "* * * ? * 9#1",
        "* * * ? * LW",
        "* * * ? * L-3",
        "* * * * * ? 1960",
        "* * * * * ? 99",
        "* * * * * ? L",
        "* * * * * ? * x",
    ] {
        assert!(Cron::parse(expression).is_err(), "{expression:?}");
    }
}

/// The first of these hang Quartz.
#[test]
fn the_search_ends() {
    let start: Timestamp = "2026-03-20T09:46:40Z".parse().unwrap();
    for expression in ["0 0 0 L-30W 2 ?", "0 0 0 L-28W 2 ? 2029", "0 0 0 30 2 ?", "0 0 0 31W 2 ?", "* * * * * ? 2025"] {
        assert_eq!(Cron::parse(expression).unwrap().next_after(start, &TimeZone::UTC), None, "{expression}");
    }
    let l30w = Cron::parse("0 0 14 L-30W * ?").unwrap();
    assert_eq!(l30w.next_after(start, &TimeZone::UTC), Some("2026-05-01T14:00:00Z".parse().unwrap()));
    // 2023-04-28, the weekday nearest to the 30th, has no hour 0 in Cairo.
    let start = "2023-04-27T22:00:00Z".parse().unwrap();
    let cairo = TimeZone::get("Africa/Cairo").unwrap();
    let next = Cron::parse("0 0 0 30W * ?").unwrap().next_after(start, &cairo);
    assert_eq!(next, Some("2023-05-30T00:00:00+03:00".parse().unwrap()));
    let always = Cron::parse("* * * * * ?").unwrap();
    assert_eq!(always.next_after(Timestamp::MAX, &TimeZone::UTC), None);
    assert_eq!(always.next_after("2199-12-31T23:59:59Z".parse().unwrap(), &TimeZone::UTC), None);
    assert!(always.next_after(Timestamp::MIN, &cairo).is_some());
}

#[test]
fn parts_of_a_second_do_not_count() {
    let always = Cron::parse("*\t* * * * ?\n").unwrap();
    for (after, next) in
        [("2026-03-20T09:46:40.999Z", "2026-03-20T09:46:41Z"), ("1969-12-31T23:59:59.001Z", "1970-01-01T00:00:00Z")]
    {
        assert_eq!(always.next_after(after.parse().unwrap(), &TimeZone::UTC), Some(next.parse().unwrap()));
    }
}

/// An expression with the numbers that it allows.
#[derive(Clone, Debug)]
struct Written {
    text: String,
    seconds: Vec<i8>,
    minutes: Vec<i8>,
    hours: Vec<i8>,
    months: Vec<i8>,
    day: Day,
}

#[derive(Clone, Debug)]
enum Day {
    OfMonth(Vec<i8>),
    OfWeek(Vec<i8>),
    Last(i8),
    LastOfWeek(i8),
    Nth(i8, i8),
    /// At most 28; those after it are not in each month.
    Nearest(i8),
}

impl Day {
    fn fields(&self) -> (String, String) {
        match self {
            Self::OfMonth(days) => (list(days), "?".into()),
            Self::OfWeek(days) => ("?".into(), list(days)),
            Self::Last(before) => (format!("L-{before}"), "?".into()),
            Self::LastOfWeek(day) => ("?".into(), format!("{day}L")),
            Self::Nth(day, nth) => ("?".into(), format!("{day}#{nth}")),
            Self::Nearest(day) => (format!("{day}W"), "?".into()),
        }
    }

    fn allows(&self, time: DateTime) -> bool {
        let (day, last) = (time.day(), time.days_in_month());
        let of_week = time.weekday().to_sunday_one_offset();
        match self {
            Self::OfMonth(days) => days.contains(&day),
            Self::OfWeek(days) => days.contains(&of_week),
            Self::Last(before) => day == last - before,
            Self::LastOfWeek(wanted) => *wanted == of_week && day > last - 7,
            Self::Nth(wanted, nth) => *wanted == of_week && (day - 1) / 7 + 1 == *nth,
            Self::Nearest(wanted) => match (time.with().day(*wanted).build().unwrap().weekday(), *wanted) {
                (Weekday::Saturday, 1) => day == 3,
                (Weekday::Saturday, _) => day == wanted - 1,
                (Weekday::Sunday, _) if *wanted == last => day == wanted - 2,
                (Weekday::Sunday, _) => day == wanted + 1,
                _ => day == *wanted,
            },
        }
    }
}

impl Written {
    fn allows(&self, time: DateTime) -> bool {
        self.seconds.contains(&time.second())
            && self.minutes.contains(&time.minute())
            && self.hours.contains(&time.hour())
            && self.months.contains(&time.month())
            && self.day.allows(time)
    }
}

fn list(numbers: &[i8]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn numbers(least: i8, most: i8) -> impl Strategy<Value = Vec<i8>> {
    prop_oneof![prop::collection::vec(least..=most, 1..5), Just((least..=most).collect())]
}

fn written() -> impl Strategy<Value = Written> {
    let day = prop_oneof![
        numbers(1, 31).prop_map(Day::OfMonth),
        numbers(1, 7).prop_map(Day::OfWeek),
        (0..=30_i8).prop_map(Day::Last),
        (1..=7_i8).prop_map(Day::LastOfWeek),
        (1..=7_i8, 1..=5_i8).prop_map(|(day, nth)| Day::Nth(day, nth)),
        (1..=28_i8).prop_map(Day::Nearest),
    ];
    (numbers(0, 59), numbers(0, 59), numbers(0, 23), numbers(1, 12), day).prop_map(
        |(seconds, minutes, hours, months, day)| {
            let (of_month, of_week) = day.fields();
            let [s, m, h, mo] = [&seconds, &minutes, &hours, &months].map(|numbers| list(numbers));
            Written { text: format!("{s} {m} {h} {of_month} {mo} {of_week}"), seconds, minutes, hours, months, day }
        },
    )
}

/// From 2015 to 2060.
fn instant() -> impl Strategy<Value = Timestamp> {
    (1_420_070_400..2_840_140_800_i64).prop_map(|second| Timestamp::from_second(second).unwrap())
}

fn zone() -> impl Strategy<Value = TimeZone> {
    prop::sample::select(&ZONES[..]).prop_map(|name| TimeZone::get(name).unwrap())
}

proptest! {
    #[test]
    fn a_fire_time_is_later_and_matches(written in written(), after in instant(), zone in zone()) {
        let cron = Cron::parse(&written.text).unwrap();
        if let Some(next) = cron.next_after(after, &zone) {
            prop_assert!(next > after);
            prop_assert!(written.allows(zone.to_datetime(next)), "{} fires at {next}", written.text);
        }
    }

    /// Where clocks never change: a daylight change moves a start (see the module).
    #[test]
    fn nothing_lies_between(written in written(), after in instant(), part in 0.0..1.0_f64) {
        let cron = Cron::parse(&written.text).unwrap();
        for zone in [TimeZone::UTC, TimeZone::get("Asia/Kathmandu").unwrap()] {
            let Some(next) = cron.next_after(after, &zone) else { continue };
            let seconds = ((next.as_second() - after.as_second() - 1) as f64 * part) as i64;
            let between = after + SignedDuration::from_secs(seconds);
            prop_assert_eq!(cron.next_after(between, &zone), Some(next));
            prop_assert!(cron.next_after(next, &zone).is_none_or(|later| later > next));
            prop_assert!(between == after || !written.allows(zone.to_datetime(between)));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in r"[0-9*/,?LW#A-Fa-f -]{0,30}|\PC{0,20}", after in instant()) {
        if let Ok(cron) = Cron::parse(&text) {
            prop_assert!(cron.next_after(after, &TimeZone::UTC).is_none_or(|next| next > after));
        }
    }
}
