//! Times as Spark's REST writes and reads them.

use super::errors::Failure;
use jiff::{Timestamp, civil};
use serde::{Serialize, Serializer};

/// A time, epoch ms, written as `2015-02-03T16:43:05.829GMT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub i64);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Timestamp::from_millisecond(self.0) {
            Ok(time) => serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S.%3fGMT")),
            Err(_) => serializer.serialize_none(),
        }
    }
}

/// A date or a time with its zone, as `minDate` takes it.
pub(super) fn parse(text: &str) -> Result<i64, Failure> {
    let bad = || Failure::bad_request(format!("Couldn't parse date: {text}"));
    let day = |date: civil::Date| date.to_zoned(jiff::tz::TimeZone::UTC).map(|z| z.timestamp().as_millisecond()).ok();
    if let Some(ms) = text.parse::<civil::Date>().ok().filter(|_| text.len() == 10).and_then(day) {
        return Ok(ms);
    }
    let utc = ["GMT", "UTC", "Z"].iter().find_map(|zone| text.strip_suffix(zone));
    let time = match utc {
        Some(time) => format!("{time}Z"),
        None => text.to_owned(),
    };
    time.parse::<Timestamp>().map(|t| t.as_millisecond()).map_err(|_| bad())
}
