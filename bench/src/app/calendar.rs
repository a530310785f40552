//! Dates and times as MySQL writes them, counted from the shop's first day.

/// The shop's first day, 2023-01-01, in days since 1970.
const FIRST_DAY: u64 = 19_358;
/// Days that the shop has been open: to the end of 2025.
pub const DAYS: u64 = 1_096;
/// Months of these days.
pub const MONTHS: u64 = 36;
/// Seconds of a day.
pub const SECONDS_OF_DAY: u64 = 86_400;

/// The date of a day, by day number: `2023-01-01`.
pub fn day(number: u64) -> String {
    let (year, month, day) = civil(FIRST_DAY + number);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The first day of a month, by month number.
pub fn month(number: u64) -> String {
    format!("{:04}-{:02}-01", 2023 + number / 12, number % 12 + 1)
}

/// A timestamp, by second number: `2023-01-01 00:00:00`.
pub fn moment(second: u64) -> String {
    let within = second % SECONDS_OF_DAY;
    let (hours, minutes, seconds) = (within / 3_600, within / 60 % 60, within % 60);
    format!("{} {hours:02}:{minutes:02}:{seconds:02}", day(second / SECONDS_OF_DAY))
}

/// Year, month and day (Gregorian calendar) of a day since 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_moments_are_those_of_the_calendar() {
        assert_eq!(
            [0, 31, 58, 59, 365].map(day).join(" "),
            "2023-01-01 2023-02-01 2023-02-28 2023-03-01 2024-01-01"
        );
        assert_eq!([424, 425, DAYS - 1].map(day).join(" "), "2024-02-29 2024-03-01 2025-12-31");
        assert_eq!(
            [0, 11, 12, 35].map(month).join(" "),
            "2023-01-01 2023-12-01 2024-01-01 2025-12-01"
        );
        assert_eq!(moment(2 * SECONDS_OF_DAY + 3_661), "2023-01-03 01:01:01");
    }
}
