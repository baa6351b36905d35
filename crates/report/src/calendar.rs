//! Wall-clock time as a date, without a time zone database: reports say UTC.

/// `2026-11-20 23:32` (UTC) from milliseconds since 1970.
pub fn utc(unix_ms: i64) -> String {
    let minutes = unix_ms.div_euclid(60_000);
    let (year, month, day) = civil_from_days(minutes.div_euclid(1_440));
    let minute = minutes.rem_euclid(1_440);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// `2026-11-20T23:32:05Z`, as XML and JSON write it.
pub(crate) fn utc_to_the_second(unix_ms: i64) -> String {
    format!("{}:{:02}Z", utc(unix_ms).replace(' ', "T"), unix_ms.div_euclid(1_000).rem_euclid(60))
}

/// The Gregorian date of a day counted from 1970-01-01.
///
/// Howard Hinnant's algorithm: years are taken to begin in March, so that the leap day is the last of its year, and are
/// counted in eras of 400 years, which all have 146,097 days.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // from 0000-03-01
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153; // 0 is March
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00");
        assert_eq!(utc(-1), "1969-12-31 23:59");
        assert_eq!(utc_to_the_second(-1), "1969-12-31T23:59:59Z");
        assert_eq!(utc_to_the_second(1_795_217_525_999), "2026-11-20T23:32:05Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00");
        assert_eq!(utc(1_795_217_520_000), "2026-11-20 23:32");
        assert_eq!(utc(4_107_542_399_000), "2100-02-28 23:59");
        assert_eq!(utc(4_107_542_400_000), "2100-03-01 00:00");
    }
}
