//! How numbers are shown, everywhere the same: at most three digits, binary sizes, a proper
//! minus sign.

use std::fmt;

/// A duration in milliseconds; shown as `840 ms`, `4.6 s`, `41 s`, `12 m 15 s`, `3 h 04 m`, `2 d 6 h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub i64);

/// A size in bytes; shown binary with three digits: `128 MiB`, `38.2 GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// A number of things; shown as `8 413`, from ten million on as `12.4 M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// How many times one thing is another; shown as `40 ×`, `1.5 ×`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Factor(pub f64);

/// A share between 0 and 1; shown as `30 %`, `0.09 %`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            write!(f, "−")?;
        }
        let ms = self.0.unsigned_abs();
        let s = ms.saturating_add(500) / 1_000;
        match ms {
            0..1_000 => write!(f, "{ms} ms"),
            1_000..9_950 => write!(f, "{:.1} s", ms as f64 / 1e3),
            _ if s < 60 => write!(f, "{s} s"),
            _ if s < 3_600 => write!(f, "{} m {:02} s", s / 60, s % 60),
            _ if s < 86_400 => write!(f, "{} h {:02} m", s / 3_600, s % 3_600 / 60),
            _ => write!(f, "{} d {} h", s / 86_400, s % 86_400 / 3_600),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1_024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1_024.0;
        let mut unit = 0;
        while value >= 999.5 && unit < UNITS.len() - 1 {
            value /= 1_024.0;
            unit += 1;
        }
        write!(f, "{} {}", three_digits(value), UNITS[unit])
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..10_000_000 => grouped(self.0, f),
            10_000_000..999_500_000 => write!(f, "{} M", three_digits(self.0 as f64 / 1e6)),
            _ => write!(f, "{} G", three_digits(self.0 as f64 / 1e9)),
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ×", three_digits(self.0))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        if percent != 0.0 && percent.abs() < 1.0 {
            write!(f, "{percent:.2} %")
        } else if percent.abs() < 9.95 && percent.fract().abs() > 0.05 {
            write!(f, "{percent:.1} %")
        } else {
            write!(f, "{percent:.0} %")
        }
    }
}

/// Thousands apart by a narrow no-break space: `8 413`.
fn grouped(n: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let digits = n.to_string();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            f.write_str("\u{202f}")?;
        }
        write!(f, "{digit}")?;
    }
    Ok(())
}

fn three_digits(value: f64) -> String {
    let shown = match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    match shown.contains('.') {
        true => shown.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_people_say_them() {
        for (ms, shown) in [
            (0, "0 ms"),
            (840, "840 ms"),
            (4_600, "4.6 s"),
            (41_000, "41 s"),
            (735_000, "12 m 15 s"),
            (11_040_000, "3 h 04 m"),
            (194_400_000, "2 d 6 h"),
            (-1_500, "−1.5 s"),
            (i64::MIN, "−106751991167 d 7 h"),
        ] {
            assert_eq!(Millis(ms).to_string(), shown);
        }
    }

    #[test]
    fn sizes_counts_factors_and_shares() {
        assert_eq!(Bytes(1_023).to_string(), "1023 B");
        assert_eq!(Bytes(128 << 20).to_string(), "128 MiB");
        assert_eq!(Bytes(5_379_110_116).to_string(), "5.01 GiB");
        assert_eq!(Bytes(u64::MAX).to_string(), "16 EiB");
        assert_eq!(Count(8_413).to_string(), "8\u{202f}413");
        assert_eq!(Count(412_000_000).to_string(), "412 M");
        assert_eq!(Factor(40.0).to_string(), "40 ×");
        assert_eq!(Factor(1.5).to_string(), "1.5 ×");
        assert_eq!(Share(0.302).to_string(), "30 %");
        assert_eq!(Share(0.0009).to_string(), "0.09 %");
        assert_eq!(Share(0.045).to_string(), "4.5 %");
    }
}
