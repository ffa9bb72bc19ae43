//! Reads an expression.

use super::{Cron, Days, FIRST_YEAR, LAST_YEAR, values::Values};
use std::fmt;
use thiserror::Error;

const MONTHS: [&str; 12] = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
];
const WEEKDAYS: [&str; 7] = ["SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"];

/// Letters of a short name.
const SHORT: usize = 3;

/// Most days before the last, as in `L-30`.
const MOST_BEFORE_LAST: u32 = 30;

/// Why an expression cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CronError {
    /// It has another number of fields than 6 or 7.
    #[error(
        "an expression has 6 fields (seconds, minutes, hours, day of month, month, day of week) or 7 (and a year), \
         not {0}"
    )]
    Count(usize),
    /// Both of the day fields are `?`, or none is.
    #[error("day of month {of_month} and day of week {of_week}: exactly one of them has to be ?")]
    Days {
        /// Day of month.
        of_month: String,
        /// Day of week.
        of_week: String,
    },
    /// A field is wrong.
    #[error("{field}: {problem}")]
    Field {
        /// Which one.
        field: Field,
        /// What is wrong, and what is allowed.
        problem: String,
    },
}

/// A field of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// 0-59.
    Seconds,
    /// 0-59.
    Minutes,
    /// 0-23.
    Hours,
    /// 1-31.
    DayOfMonth,
    /// 1-12 or JAN-DEC.
    Month,
    /// 1-7 or SUN-SAT.
    DayOfWeek,
    /// From 1970.
    Year,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::Hours => "hours",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
            Self::Year => "year",
        })
    }
}

impl Field {
    /// The least and the greatest number.
    const fn limits(self) -> (u32, u32) {
        match self {
            Self::Seconds | Self::Minutes => (0, 59),
            Self::Hours => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (1, 7),
            Self::Year => (FIRST_YEAR as u32, LAST_YEAR as u32),
        }
    }

    /// The greatest step after `*` or a number; Quartz does not look at one after a range.
    const fn longest_step(self) -> u32 {
        match self {
            Self::Year => u32::MAX,
            _ => self.limits().1,
        }
    }

    /// The number that is bit 0 of the values.
    const fn base(self) -> u32 {
        match self {
            Self::Year => FIRST_YEAR as u32,
            _ => 0,
        }
    }

    /// The names of the numbers from the least on.
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    fn error(self, problem: String) -> CronError {
        CronError::Field { field: self, problem }
    }

    /// The error that this text is no value of the field.
    fn outside(self, text: &str) -> CronError {
        let (least, most) = self.limits();
        let names = match self.names() {
            [first, .., last] => format!(" or {}-{}", &first[..SHORT], &last[..SHORT]),
            _ => String::new(),
        };
        let allowed = format!("{least}-{most}{names}");
        self.error(match text {
            "" => format!("a value is missing; allowed is {allowed}"),
            _ => format!("{} is not in {allowed}", shown(text)),
        })
    }
}

/// Text for a message.
fn shown(text: &str) -> String {
    if text.is_empty() { "nothing".into() } else { text.escape_debug().to_string() }
}

/// Reads a whole expression.
pub(super) fn expression(text: &str) -> Result<Cron, CronError> {
    let mut parts = text.trim().split([' ', '\t']).filter(|part| !part.is_empty());
    let mut fields = [""; 6];
    for (i, field) in fields.iter_mut().enumerate() {
        *field = parts.next().ok_or(CronError::Count(i))?;
    }
    let [seconds, minutes, hours, of_month, month, of_week] = fields;
    let year = parts.next().unwrap_or("*");
    match parts.count() {
        0 => {}
        more => return Err(CronError::Count(fields.len() + 1 + more)),
    }
    Ok(Cron {
        seconds: values(Field::Seconds, seconds)?,
        minutes: values(Field::Minutes, minutes)?,
        hours: values(Field::Hours, hours)?,
        days: days(of_month, of_week)?,
        months: values(Field::Month, month)?,
        years: values(Field::Year, year)?,
    })
}

/// Reads the two fields of days. Exactly one of them is `?`.
fn days(of_month: &str, of_week: &str) -> Result<Days, CronError> {
    match (of_month, of_week) {
        ("?", "?") => {}
        (_, "?") => return days_of_month(of_month),
        ("?", _) => return days_of_week(of_week),
        _ => {
            // What is wrong in itself goes first.
            days_of_month(of_month)?;
            days_of_week(of_week)?;
        }
    }
    Err(CronError::Days { of_month: shown(of_month), of_week: shown(of_week) })
}

/// Reads `L`, `L-2`, `LW`, `L-2W`, `15W`, or values.
fn days_of_month(text: &str) -> Result<Days, CronError> {
    const FIELD: Field = Field::DayOfMonth;
    alone(FIELD, text, &['L', 'l', 'W', 'w'])?;
    if let Some(rest) = text.strip_prefix(['L', 'l']) {
        let (rest, weekday) = rest.strip_suffix(['W', 'w']).map_or((rest, false), |rest| (rest, true));
        let before = match (rest, rest.strip_prefix('-')) {
            ("", _) => Some(0),
            (_, Some(digits)) => number(digits).filter(|before| *before <= MOST_BEFORE_LAST),
            _ => None,
        };
        let allowed = || FIELD.error(format!("{} is not L, LW, or L-0 to L-{MOST_BEFORE_LAST}", shown(text)));
        let before = small(before.ok_or_else(allowed)?);
        return Ok(if weekday { Days::LastWeekday(before) } else { Days::Last(before) });
    }
    if let Some(day) = text.strip_suffix(['W', 'w']) {
        return Ok(Days::NearestWeekday(small(value(FIELD, day)?)));
    }
    Ok(Days::OfMonth(values(FIELD, text)?))
}

/// Reads `L`, `6L`, `6#3`, or values.
fn days_of_week(text: &str) -> Result<Days, CronError> {
    const FIELD: Field = Field::DayOfWeek;
    const SATURDAY: u8 = 7;
    alone(FIELD, text, &['L', 'l', '#'])?;
    if text.eq_ignore_ascii_case("L") {
        let mut days = Values::default();
        days.insert(SATURDAY);
        return Ok(Days::OfWeek(days));
    }
    if let Some(day) = text.strip_suffix(['L', 'l']) {
        return Ok(Days::LastOfWeek(small(value_or_name(FIELD, day)?)));
    }
    if let Some((day, nth)) = text.split_once('#') {
        let day = value_or_name(FIELD, day)?;
        let wrong = || FIELD.error(format!("{} after # is not in 1-5", shown(nth)));
        let nth = number(nth).filter(|nth| (1..=5).contains(nth)).ok_or_else(wrong)?;
        return Ok(Days::NthOfWeek(small(day), small(nth)));
    }
    Ok(Days::OfWeek(values(FIELD, text)?))
}

/// A list has none of these in it.
fn alone(field: Field, text: &str, special: &[char]) -> Result<(), CronError> {
    match text.split(',').find(|item| item.contains(special)) {
        Some(item) if text.contains(',') => {
            Err(field.error(format!("{} cannot be in a list, {}", shown(item), shown(text))))
        }
        _ => Ok(()),
    }
}

/// Reads a list of values, ranges and steps.
fn values(field: Field, text: &str) -> Result<Values, CronError> {
    let mut values = Values::default();
    for item in text.split(',') {
        if item == "?" {
            return Err(field.error("? is for day of month or day of week, and alone".into()));
        }
        add(field, item, &mut values)?;
    }
    Ok(values)
}

/// Reads an item of a list: `*`, `5`, `5-9`, each with a step or not; `MON`, `MON-FRI`.
fn add(field: Field, item: &str, values: &mut Values) -> Result<(), CronError> {
    let (base, step) = match item.split_once('/') {
        Some((base, step)) => (base, Some(step)),
        None => (item, None),
    };
    if step.is_some() && base.contains(|c: char| c.is_ascii_alphabetic()) {
        return Err(field.error(format!("{} has a step, which goes with numbers only", shown(item))));
    }
    let (least, most) = field.limits();
    if let Some((from, to)) = base.split_once('-') {
        let step = step.map(|text| self::step(field, text, u32::MAX)).transpose()?;
        let (from, to) = range(field, from, to)?;
        return insert(field, from, to, step.unwrap_or(1), values);
    }
    let step = step.map(|text| self::step(field, text, field.longest_step())).transpose()?;
    match (base, step) {
        ("*" | "", Some(0)) => Err(field.error(format!("{} has a step of 0", shown(item)))),
        ("*", _) | ("", Some(_)) => insert(field, least, most, step.unwrap_or(1), values),
        (_, Some(step)) => insert(field, value(field, base)?, most, step, values),
        (_, None) => {
            let value = value(field, base).or_else(|error| whole_name(field, base).ok_or(error))?;
            insert(field, value, value, 1, values)
        }
    }
}

/// Reads the ends of a range: two numbers or two names.
fn range(field: Field, from: &str, to: &str) -> Result<(u32, u32), CronError> {
    if let (Some(from), Some(to)) = (short_name(field, from), whole_name(field, to)) {
        return Ok((from, to));
    }
    let is_name = |text| whole_name(field, text).is_some();
    if is_name(from) && !is_name(to) && number(to).is_none() {
        return Err(field.outside(to));
    }
    if is_name(from) || is_name(to) {
        let range = format!("{}-{}", shown(from), shown(to));
        return Err(field.error(format!("{range} is not of two numbers or two names of {SHORT} letters")));
    }
    Ok((value(field, from)?, value(field, to)?))
}

/// Puts in the numbers of a range, from step to step. One that ends before it begins goes on from the least
/// number, except for years. A step of 0 leaves the first number alone.
fn insert(field: Field, from: u32, to: u32, step: u32, values: &mut Values) -> Result<(), CronError> {
    let (least, most) = field.limits();
    let span = most - least + 1;
    if to < from && field == Field::Year {
        return Err(field.error(format!("{from}-{to} ends before it begins")));
    }
    let to = if to < from { to + span } else { to };
    let step = if step == 0 { span } else { step };
    for number in (from..=to).step_by(step as usize) {
        let value = least + (number - least) % span;
        values.insert(u8::try_from(value - field.base()).unwrap_or(u8::MAX));
    }
    Ok(())
}

/// Reads a step.
fn step(field: Field, text: &str, longest: u32) -> Result<u32, CronError> {
    let step = number(text).ok_or_else(|| field.error(format!("{} after / is not a number", shown(text))))?;
    if step > longest {
        return Err(field.error(format!("a step of {step} is more than {longest}")));
    }
    Ok(step)
}

/// Reads a number of the field.
fn value(field: Field, text: &str) -> Result<u32, CronError> {
    let (least, most) = field.limits();
    number(text).filter(|value| (least..=most).contains(value)).ok_or_else(|| field.outside(text))
}

/// Reads a number or a short name of the field.
fn value_or_name(field: Field, text: &str) -> Result<u32, CronError> {
    value(field, text).or_else(|error| short_name(field, text).ok_or(error))
}

/// `mon`.
fn short_name(field: Field, text: &str) -> Option<u32> {
    named(field, |name| name[..SHORT].eq_ignore_ascii_case(text))
}

/// `mon` or `monday`.
fn whole_name(field: Field, text: &str) -> Option<u32> {
    short_name(field, text).or_else(|| named(field, |name| name.eq_ignore_ascii_case(text)))
}

/// The number whose name is meant.
fn named(field: Field, is_meant: impl Fn(&str) -> bool) -> Option<u32> {
    let (least, _) = field.limits();
    (least..).zip(field.names()).find(|(_, name)| is_meant(name)).map(|(value, _)| value)
}

/// Reads digits and nothing else.
fn number(text: &str) -> Option<u32> {
    // `parse` takes a sign too.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A number of days; they are checked before.
fn small(days: u32) -> i8 {
    i8::try_from(days).unwrap_or(i8::MAX)
}
