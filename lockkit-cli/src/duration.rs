//! Durations, as they are written on the command line and shown to people.

use std::time::Duration;

/// Reads `500ms`, `2m`, `1h 30m`. A number without a unit is refused, except for `0`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let bare = text.trim();
    if bare != "0" && bare.parse::<f64>().is_ok() {
        return Err(format!(
            "a duration needs a unit; write {bare}s for seconds"
        ));
    }
    humantime::parse_duration(bare)
        .map_err(|error| format!("{error}; write for example 500ms, 10s or 2m"))
}

/// Rounds down to what people read at a glance: `250ms`, `12s`, `3m 2s`.
pub(crate) fn short(duration: Duration) -> String {
    let shown = if duration < Duration::from_secs(1) {
        Duration::from_millis(u64::from(duration.subsec_millis()))
    } else {
        Duration::from_secs(duration.as_secs())
    };
    humantime::format_duration(shown).to_string()
}

/// Whole milliseconds, for programs.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_refused_with_the_cure() {
        for bare in ["10", " 10 ", "1.5", "-3"] {
            assert!(parse(bare).is_err(), "{bare}");
        }
        assert!(parse("10").unwrap_err().contains("write 10s"));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1h 30m"), Ok(Duration::from_secs(5400)));
        assert!(parse("").is_err());
        assert!(parse("soon").is_err());
    }

    #[test]
    fn people_see_whole_units() {
        assert_eq!(short(Duration::from_micros(250_999)), "250ms");
        assert_eq!(short(Duration::from_millis(182_900)), "3m 2s");
        assert_eq!(short(Duration::ZERO), "0s");
    }
}
