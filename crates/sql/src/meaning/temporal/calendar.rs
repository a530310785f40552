//! Day numbers of the calendar, and weeks in MySQL's eight modes.

use super::Moment;

/// The number of days in a month.
pub(crate) fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(i64::from(year)) => 29,
        2 => 28,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days since the start of the year 0; 0 for 0000-00-00.
pub(crate) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    if year == 0 && month == 0 {
        return 0;
    }
    let mut days = 365 * year + 31 * (month - 1) + day;
    let mut year = year;
    if month <= 2 {
        year -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    days + year.div_euclid(4) - (year.div_euclid(100) + 1) * 3 / 4
}

/// The date with a day number, if it is in the years 0 to 9999.
pub(crate) fn date_of_day_number(number: i64) -> Option<Moment> {
    if number <= 0 || number > 3_652_424 {
        return (number == 0).then(Moment::default);
    }
    let mut year = number * 100 / 36_525;
    let leaps = (((year - 1) / 100 + 1) * 3) / 4;
    let mut day = number - year * 365 - (year - 1) / 4 + leaps;
    let mut length = 365 + i64::from(is_leap(year));
    while day > length {
        day -= length;
        year += 1;
        length = 365 + i64::from(is_leap(year));
    }
    while day < 1 {
        year -= 1;
        day += 365 + i64::from(is_leap(year));
    }
    let year = u16::try_from(year).ok()?;
    let mut month = 1;
    while day > i64::from(days_in_month(year, month)) {
        day -= i64::from(days_in_month(year, month));
        month += 1;
    }
    Some(Moment::date(year, month, u8::try_from(day).ok()?))
}

/// The weekday, from 0 for Monday.
pub(crate) fn weekday(day_number: i64) -> i64 {
    (day_number + 5).rem_euclid(7)
}

/// WEEK() in one of its modes.
pub(crate) fn week(moment: Moment, mode: u8) -> i64 {
    year_week(moment, mode, false).1
}

/// The year that a week belongs to, and the week. With `with_year`, days before the first week
/// always belong to the last week of the previous year.
pub(crate) fn year_week(moment: Moment, mode: u8, with_year: bool) -> (i64, i64) {
    let monday_first = mode & 1 != 0;
    let week_year = mode & 2 != 0 || with_year;
    // Modes 4 to 7 invert the rule for the first week, and so does the first weekday.
    let first_weekday = if monday_first { mode & 4 != 0 } else { mode & 4 == 0 };
    let mut year = i64::from(moment.year);
    let number = moment.day_number();
    let mut first_day = day_number(year, 1, 1);
    let start = |day: i64| if monday_first { weekday(day) } else { (weekday(day) + 1) % 7 };
    let mut weekday_of_first = start(first_day);
    let mut week_year = week_year;
    let late = |weekday: i64| (first_weekday && weekday != 0) || (!first_weekday && weekday >= 4);
    if moment.month == 1 && i64::from(moment.day) <= 7 - weekday_of_first {
        if !week_year && late(weekday_of_first) {
            return (year, 0);
        }
        week_year = true;
        year -= 1;
        let days = 365 + i64::from(is_leap(year));
        first_day -= days;
        weekday_of_first = (weekday_of_first + 53 * 7 - days) % 7;
    }
    let days = if late(weekday_of_first) {
        number - (first_day + (7 - weekday_of_first))
    } else {
        number - (first_day - weekday_of_first)
    };
    if week_year && days >= 52 * 7 {
        let next = (weekday_of_first + 365 + i64::from(is_leap(year))) % 7;
        if (!first_weekday && next < 4) || (first_weekday && next == 0) {
            return (year + 1, 1);
        }
    }
    (year, days / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_numbers_and_dates_are_each_others_reverse() {
        assert_eq!(day_number(2020, 1, 1), 737_790);
        assert_eq!(day_number(0, 0, 0), 0);
        assert_eq!(day_number(1970, 1, 1), 719_528);
        for number in (366..3_652_424).step_by(97) {
            let date = date_of_day_number(number).unwrap();
            assert_eq!(date.day_number(), number, "{date:?}");
        }
        assert_eq!(date_of_day_number(3_652_425), None);
    }

    #[test]
    fn weeks_are_counted_in_every_mode() {
        let first = Moment::date(2008, 2, 20);
        assert_eq!(week(first, 0), 7);
        assert_eq!(week(first, 1), 8);
        assert_eq!(week(Moment::date(2000, 1, 1), 0), 0);
        assert_eq!(week(Moment::date(2000, 1, 1), 2), 52);
        assert_eq!(year_week(Moment::date(1987, 1, 1), 0, true), (1986, 52));
        assert_eq!(week(Moment::date(2008, 12, 31), 1), 53);
    }
}
