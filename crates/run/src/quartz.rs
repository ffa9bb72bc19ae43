//! Quartz cron expressions: when does a schedule fire next.
//!
//! In: an expression such as `0 30 9 ? * MON-FRI`, an instant, a time zone. Out: the first fire time
//! after that instant. No clock is read.
//!
//! ```
//! use run::quartz::Cron;
//!
//! let cron = Cron::parse("0 30 9 ? * MON-FRI")?;
//! let zone = jiff::tz::TimeZone::get("Europe/Prague")?;
//! let next = cron.next_after("2026-03-27T12:00:00Z".parse()?, &zone);
//! assert_eq!(next, Some("2026-03-30T09:30:00+02:00".parse()?));
//! assert_eq!(Cron::parse("0 0 25 * * ?").unwrap_err().to_string(), "hours: 25 is not in 0-23");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The fire times are those of the Java library Quartz 2.3.2, `getNextValidTimeAfter`, its accidents
//! included:
//!
//! - A local time that occurs twice means its second occurrence. A start in the first one counts as
//!   the same local time in the second, so that `* * * * * ?` jumps over an hour in autumn.
//! - A local time that does not exist becomes the one as much later as the clock jumps, and the
//!   search goes on from there. A time that matches soon after the jump may be missed: after 1:30
//!   `0 15,30 * * * ?` misses 2:30 where the clock jumps from 2:00 to 2:30. Where it jumps from 23:00
//!   to 0:00, the next day is missed.
//! - `31W` in a month of 30 days is the weekday nearest to the 1st of the next month, if that is
//!   still in this month. It's found only if the search begins in this month or comes to it by the
//!   month field; the same holds for `29W` to `31W` in February.
//!
//! It differs from Quartz on purpose:
//!
//! - What Quartz accepts and then reads in part, or in another way than written, is an error. It
//!   would run a job at times that nobody asked for. That is text left over (`5x`, `*5`, `MON-FRI/2`,
//!   `10-15W`, an eighth field), a list of which only one item counts (`1W,15W`, `MON,FRI#2`), empty
//!   items (`1,,2`), `*/0`, `L` outside of the day fields, and numbers that are out of range and not
//!   noticed (`99` for `*`, `98` for `?`, `0W`, `9#1`, `5-0`). Names are those of three letters; the
//!   whole name (`MONDAY`) is taken where Quartz reads it right.
//! - Years go from 1970 to [`LAST_YEAR`]. Quartz takes any year, and finds nothing more than a
//!   century ahead of the day it runs on.
//! - Where Quartz never returns, the month is left out: `L-30W` in a month that has no such day, and
//!   `30W` if the hours asked for don't exist on that day.
//! - The milliseconds of the start don't count. With `W` Quartz compares them to those of the clock.
//! - The rules of a zone are those that `jiff` has. Java's end in 2037 where they are not regular, as
//!   in Morocco.

mod parse;
mod values;

pub use parse::{CronError, Field};

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use values::Values;

/// The last year of a schedule; the search for a fire time ends there.
pub const LAST_YEAR: i16 = 2199;

/// The first year that can be written; bit 0 of the years.
const FIRST_YEAR: i16 = 1970;

/// An expression that has been read. See [`quartz`](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    seconds: Values,
    minutes: Values,
    hours: Values,
    days: Days,
    months: Values,
    /// Since [`FIRST_YEAR`].
    years: Values,
}

/// Which days of a month: what is not `?` of day of month and day of week. Days of the week are
/// counted from Sunday, 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Days {
    /// `1,15`.
    OfMonth(Values),
    /// `L-2`: so many before the last.
    Last(i8),
    /// `L-2W`: the weekday nearest to it.
    LastWeekday(i8),
    /// `15W`.
    NearestWeekday(i8),
    /// `MON,FRI`.
    OfWeek(Values),
    /// `6L`.
    LastOfWeek(i8),
    /// `6#3`: day of the week, and which one of the month, from 1.
    NthOfWeek(i8, i8),
}

/// What to do about a local time.
enum Step {
    /// It matches.
    Fire,
    /// Go on at this one.
    Go(Wall),
    /// Go on at this one, and see that the hour is not taken back by a daylight change.
    GoToHour(Wall),
    /// Neither it nor a later one matches.
    Never,
}

/// A local time that is asked for. It need not exist, and may run over by one: minute 60 is minute
/// 0 of the next hour, month 13 January.
#[derive(Clone, Copy)]
struct Wall {
    year: i16,
    month: i8,
    day: i8,
    hour: i8,
    minute: i8,
    second: i8,
}

impl Cron {
    /// Reads an expression: seconds, minutes, hours, day of month, month, day of week, and a year if
    /// there is a seventh field.
    ///
    /// # Errors
    /// Names the field, the wrong text, and what is allowed there.
    pub fn parse(expression: &str) -> Result<Self, CronError> {
        parse::expression(expression)
    }

    /// The first fire time after an instant, by the clock of a zone. `None`: there is none until the
    /// end of [`LAST_YEAR`].
    #[must_use]
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let start = zone.to_datetime(after.checked_add(SignedDuration::from_secs(1)).ok()?);
        let mut now = Wall::of(start).settle(zone)?;
        // Each turn sets a later time.
        while now.year() <= LAST_YEAR {
            now = match self.step(now) {
                Step::Fire => return instant(now, zone),
                Step::Go(wall) => wall.settle(zone)?,
                Step::GoToHour(wall) => wall.settle_hour(zone)?,
                Step::Never => return None,
            };
        }
        None
    }

    /// The first field that doesn't match says where to go on. The order is that of Quartz; it shows
    /// at daylight changes.
    fn step(&self, now: DateTime) -> Step {
        self.second(now)
            .or_else(|| self.minute(now))
            .or_else(|| self.hour(now))
            .or_else(|| self.day(now))
            .or_else(|| self.month(now))
            .or_else(|| self.year(now))
            .unwrap_or(Step::Fire)
    }

    fn second(&self, now: DateTime) -> Option<Step> {
        let wall = Wall::of(now);
        match self.seconds.next(now.second()) {
            Some(second) if second == now.second() => None,
            Some(second) => Some(Step::Go(Wall { second, ..wall })),
            None => Some(Step::Go(Wall { minute: now.minute() + 1, second: self.seconds.first(), ..wall })),
        }
    }

    fn minute(&self, now: DateTime) -> Option<Step> {
        let wall = Wall { second: 0, ..Wall::of(now) };
        match self.minutes.next(now.minute()) {
            Some(minute) if minute == now.minute() => None,
            Some(minute) => Some(Step::GoToHour(Wall { minute, ..wall })),
            None => Some(Step::GoToHour(Wall { hour: now.hour() + 1, minute: self.minutes.first(), ..wall })),
        }
    }

    fn hour(&self, now: DateTime) -> Option<Step> {
        let wall = Wall { minute: 0, second: 0, ..Wall::of(now) };
        match self.hours.next(now.hour()) {
            Some(hour) if hour == now.hour() => None,
            Some(hour) => Some(Step::GoToHour(Wall { hour, ..wall })),
            None => Some(Step::GoToHour(Wall { day: now.day() + 1, hour: self.hours.first(), ..wall })),
        }
    }

    fn day(&self, now: DateTime) -> Option<Step> {
        match self.days.next(now.date()) {
            Some(day) if day == now.day() => None,
            Some(day) => Some(Step::Go(Wall::midnight(now.year(), now.month(), day))),
            None => Some(Step::Go(self.days.next_month(now.date()))),
        }
    }

    fn month(&self, now: DateTime) -> Option<Step> {
        match self.months.next(now.month()) {
            Some(month) if month == now.month() => None,
            Some(month) => Some(Step::Go(Wall::midnight(now.year(), month, 1))),
            None => Some(Step::Go(Wall::midnight(now.year() + 1, self.months.first(), 1))),
        }
    }

    fn year(&self, now: DateTime) -> Option<Step> {
        let Some(year) = self.next_year(now.year()) else { return Some(Step::Never) };
        (year != now.year()).then(|| Step::Go(Wall::midnight(year, 1, 1)))
    }

    /// The first year of the schedule from this one on.
    fn next_year(&self, from: i16) -> Option<i16> {
        let bit = u8::try_from((from - FIRST_YEAR).max(0)).ok()?;
        Some(i16::from(self.years.next(bit)?) + FIRST_YEAR)
    }
}

impl Days {
    /// The first of these days in the month of this date, from this date on.
    fn next(self, from: Date) -> Option<i8> {
        let last = from.days_in_month();
        let day = match self {
            Self::OfMonth(days) => days.next(from.day())?,
            Self::Last(before) => last - before,
            Self::LastWeekday(before) => nearest_weekday(from, last - before),
            Self::NearestWeekday(day) => nearest_weekday(from, day),
            Self::OfWeek(days) => (from.day()..=last).find(|day| days.contains(day_of_week(from, *day)))?,
            Self::LastOfWeek(day) => last - (day_of_week(from, last) - day).rem_euclid(7),
            Self::NthOfWeek(day, nth) => 1 + (day - day_of_week(from, 1)).rem_euclid(7) + 7 * (nth - 1),
        };
        (from.day()..=last).contains(&day).then_some(day)
    }

    /// Where to go on after the month of this date. Quartz goes on at `31W` as it's written, so past
    /// a month that is shorter.
    fn next_month(self, from: Date) -> Wall {
        let next = Wall::midnight(from.year(), from.month() + 1, 1);
        match self {
            Self::NearestWeekday(day)
                if from.last_of_month().tomorrow().is_ok_and(|next| day > next.days_in_month()) =>
            {
                Wall { day, ..next }
            }
            _ => next,
        }
    }
}

/// The weekday nearest to a day of the month of this date. It stays in that month if the day is in
/// it; as in Quartz the day may be outside, and the weekday inside.
fn nearest_weekday(month: Date, day: i8) -> i8 {
    const SUNDAY: i8 = 1;
    const SATURDAY: i8 = 7;
    match day_of_week(month, day) {
        SATURDAY if day == 1 => 3,
        SATURDAY => day - 1,
        SUNDAY if day == month.days_in_month() => day - 2,
        SUNDAY => day + 1,
        _ => day,
    }
}

/// The day of the week, from Sunday, 1, that a day of the month of this date falls on. The day may
/// run over.
fn day_of_week(month: Date, day: i8) -> i8 {
    let first = month.first_of_month().weekday().to_sunday_zero_offset();
    (first + day - 1).rem_euclid(7) + 1
}

impl Wall {
    fn of(time: DateTime) -> Self {
        Self {
            year: time.year(),
            month: time.month(),
            day: time.day(),
            hour: time.hour(),
            minute: time.minute(),
            second: time.second(),
        }
    }

    const fn midnight(year: i16, month: i8, day: i8) -> Self {
        Self { year, month, day, hour: 0, minute: 0, second: 0 }
    }

    /// The local time that this is: fields that run over are carried, and one that the clock jumps
    /// over becomes as much later as it jumps. `None`: it's beyond what can be counted.
    fn settle(self, zone: &TimeZone) -> Option<DateTime> {
        let (year, month) = if self.month > 12 { (self.year + 1, 1) } else { (self.year, self.month) };
        let days = i64::from(self.day) - 1;
        let minutes = (days * 24 + i64::from(self.hour)) * 60 + i64::from(self.minute);
        let seconds = SignedDuration::from_secs(minutes * 60 + i64::from(self.second));
        let wanted = Date::new(year, month, 1).ok()?.to_datetime(Time::midnight()).checked_add(seconds).ok()?;
        Some(zone.to_datetime(instant(wanted, zone)?))
    }

    /// The same, and where the clock jumps over that hour, the hour after it. It's Quartz's way
    /// around daylight changes.
    fn settle_hour(self, zone: &TimeZone) -> Option<DateTime> {
        let settled = self.settle(zone)?;
        if settled.hour() == self.hour || self.hour == 24 {
            return Some(settled);
        }
        Self { hour: self.hour + 1, ..Self::of(settled) }.settle(zone)
    }
}

/// When this local time is; the second time if it's twice.
fn instant(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_ambiguous_timestamp(time).later().ok()
}
