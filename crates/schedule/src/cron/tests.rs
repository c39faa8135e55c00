use super::*;
use jiff::SignedDuration;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Occurrences after an instant, as local times.
fn check(expr: &str, zone: &str, after: &str, expected: &[&str]) {
    let (cron, zone) = (Cron::parse(expr).unwrap(), Zone::find(zone).unwrap());
    let mut found = Vec::new();
    let mut last = at(after);
    while found.len() < expected.len() {
        let Some(next) = cron.next_after(last, &zone) else { break };
        found.push(zone.format(next));
        last = next;
    }
    assert_eq!(found, expected, "`{expr}` in {}", zone.name());
}

fn refuse(expr: &str, part: &str) {
    let error = Cron::parse(expr).expect_err(expr).to_string();
    assert!(error.contains(part), "`{expr}`: {error}");
}

#[test]
fn sch_16_five_fields_or_six_with_seconds() {
    let after = "2026-01-01T00:00:00Z";
    check("*/20 * * * *", "UTC", after, &["2026-01-01 00:20:00 +00:00", "2026-01-01 00:40:00 +00:00"]);
    check("30 0 6 * * *", "UTC", after, &["2026-01-01 06:00:30 +00:00", "2026-01-02 06:00:30 +00:00"]);
    check(
        "0 9-17/4 * * mon-fri",
        "UTC",
        after,
        &[
            "2026-01-01 09:00:00 +00:00",
            "2026-01-01 13:00:00 +00:00",
            "2026-01-01 17:00:00 +00:00",
            "2026-01-02 09:00:00 +00:00",
        ],
    );
    check(
        "5/25 12 * feb,Mar *",
        "UTC",
        after,
        &[
            "2026-02-01 12:05:00 +00:00",
            "2026-02-01 12:30:00 +00:00",
            "2026-02-01 12:55:00 +00:00",
            "2026-02-02 12:05:00 +00:00",
        ],
    );
    check("@weekly", "UTC", after, &["2026-01-04 00:00:00 +00:00"]);
    check("0 0 * * 7", "UTC", after, &["2026-01-04 00:00:00 +00:00"]);
    check("0 0 * * 5-7", "UTC", after, &["2026-01-02 00:00:00 +00:00", "2026-01-03 00:00:00 +00:00"]);
}

#[test]
fn sch_16_a_cron_time_is_local() {
    check("0 2 * * *", "America/Los_Angeles", "2026-03-11T09:00:00Z", &["2026-03-12 02:00:00 -07:00"]);
    check("0 6 * * *", "Asia/Kathmandu", "2026-03-11T00:15:00Z", &["2026-03-12 06:00:00 +05:45"]);
}

#[test]
fn two_restricted_day_fields_are_alternatives() {
    let after = "2026-02-01T00:00:00Z";
    check("0 0 13 * FRI", "UTC", after, &["2026-02-06 00:00:00 +00:00", "2026-02-13 00:00:00 +00:00"]);
    check("0 0 13 * *", "UTC", after, &["2026-02-13 00:00:00 +00:00", "2026-03-13 00:00:00 +00:00"]);
    check("0 0 ? * FRI", "UTC", after, &["2026-02-06 00:00:00 +00:00", "2026-02-13 00:00:00 +00:00"]);
}

#[test]
fn sch_16_last_nearest_and_numbered_days() {
    let after = "2026-01-01T00:00:00Z";
    let day = |date: &str| format!("{date} 00:00:00 +00:00");
    let check_days = |expr: &str, dates: &[&str]| {
        let dates: Vec<String> = dates.iter().map(|date| day(date)).collect();
        check(expr, "UTC", after, &dates.iter().map(String::as_str).collect::<Vec<_>>());
    };
    check_days("0 0 L * *", &["2026-01-31", "2026-02-28", "2026-03-31"]);
    check_days("0 0 L-2 * *", &["2026-01-29", "2026-02-26", "2026-03-29"]);
    // 31 January is a Saturday, 28 February too, 31 May a Sunday.
    check_days("0 0 LW * *", &["2026-01-30", "2026-02-27", "2026-03-31", "2026-04-30", "2026-05-29"]);
    // 1 February and 1 March are Sundays, 1 August is a Saturday.
    check_days("0 0 1W * *", &["2026-02-02", "2026-03-02", "2026-04-01", "2026-05-01", "2026-06-01"]);
    check_days("0 0 1W 8 *", &["2026-08-03"]);
    check_days("0 0 31W * *", &["2026-01-30", "2026-03-31", "2026-05-29", "2026-07-31"]);
    check_days("0 0 * * FRIL", &["2026-01-30", "2026-02-27"]);
    check_days("0 0 * * 5#2", &["2026-01-09", "2026-02-13"]);
    check_days("0 0 * * mon#5", &["2026-03-30", "2026-06-29"]);
    check_days("0 0 29 2 *", &["2028-02-29", "2032-02-29"]);
    check_days("0 0 * 2 FRI#5", &["2036-02-29"]);
}

#[test]
fn sch_16_a_fixed_time_in_a_skipped_hour_is_at_its_end_and_a_repeated_one_once() {
    check(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-03-27T12:00:00Z",
        &["2026-03-28 02:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-30 02:30:00 +02:00"],
    );
    check(
        "0,30 2 * * *",
        "Europe/Berlin",
        "2026-03-28T12:00:00Z",
        &["2026-03-29 03:00:00 +02:00", "2026-03-30 02:00:00 +02:00"],
    );
    check(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24T12:00:00Z",
        &["2026-10-25 02:30:00 +02:00", "2026-10-26 02:30:00 +01:00"],
    );
    // The query is in the second pass, and its times belong to the first.
    check("45 2 * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", &["2026-10-26 02:45:00 +01:00"]);
    check(
        "30 1 * * *",
        "America/Los_Angeles",
        "2026-11-01T00:00:00Z",
        &["2026-11-01 01:30:00 -07:00", "2026-11-02 01:30:00 -08:00"],
    );
}

#[test]
fn sch_16_a_repeating_expression_follows_elapsed_time() {
    check(
        "30 * * * *",
        "Europe/Berlin",
        "2026-10-24T23:45:00Z",
        &["2026-10-25 02:30:00 +02:00", "2026-10-25 02:30:00 +01:00", "2026-10-25 03:30:00 +01:00"],
    );
    check(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-03-29T00:15:00Z",
        &["2026-03-29 01:30:00 +01:00", "2026-03-29 03:00:00 +02:00", "2026-03-29 03:30:00 +02:00"],
    );
    check("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-30 02:00:00 +02:00"]);
    check(
        "0 */2 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T13:30:00Z",
        &["2026-04-05 02:00:00 +10:30", "2026-04-05 04:00:00 +10:30"],
    );
}

#[test]
fn an_impossible_date_has_no_occurrence() {
    for expr in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2 *"] {
        let cron = Cron::parse(expr).unwrap();
        assert_eq!(cron.next_after(at("2026-01-01T00:00:00Z"), &Zone::find("UTC").unwrap()), None, "{expr}");
    }
}

#[test]
fn refusals_name_the_field_and_the_repair() {
    refuse("", "has 5 fields");
    refuse("* * * *", "or 6 with seconds in front, not 4");
    refuse("* * * * * * *", "not 7");
    refuse("60 * * * *", "`60` in the field minute: expected a number from 0 to 59");
    refuse("0 24 * * *", "`24` in the field hour");
    refuse("0 0 0 * *", "`0` in the field day of month: expected a number from 1 to 31");
    refuse("0 0 1 13 *", "`13` in the field month: expected a number from 1 to 12 or a name like FEB");
    refuse("0 0 * * 8", "`8` in the field day of week");
    refuse("0 0 * * FRI-MON", "the range ends before it begins; write it as two ranges");
    refuse("*/0 * * * *", "a step is a number from 1 to 59");
    refuse("*/ * * * *", "a step is a number");
    refuse("1- * * * *", "`` in the field minute");
    refuse("+1 * * * *", "`+1` in the field minute");
    refuse("1,,2 * * * *", "`` in the field minute");
    refuse("0 0 L-31 * *", "`L-` is followed by 1 to 30 days");
    refuse("0 0 1-5W * *", "`W` follows one day, as in 15W");
    refuse("0 0 * * L", "`L` follows one day, as in FRIL");
    refuse("0 0 * * FRI#6", "`#` is followed by 1 to 5, as in FRI#2");
    refuse("@reboot", "`@reboot` is unknown; use one of @yearly");
    refuse("TZ=UTC 0 0 * * * * *", "use the schedule's `timezone`");
    refuse(&"1,".repeat(600), "at most 512 bytes");
}

/// The slow reference: every minute is compared with the text of the fields; clock changes are found by comparing local
/// times of neighbouring minutes.
mod reference {
    use super::*;

    /// Whether a value is in a field, by its text.
    fn is_in(field: &str, value: i8, min: i8, max: i8) -> bool {
        field.split(',').any(|item| {
            let (range, step) = item.split_once('/').unwrap_or((item, "1"));
            let step: i8 = step.parse().unwrap();
            let (low, high) = match range.split_once('-') {
                Some((low, high)) => (low.parse().unwrap(), high.parse().unwrap()),
                None if range == "*" => (min, max),
                None => {
                    (range.parse().unwrap(), if item.contains('/') { max } else { range.parse().unwrap() })
                }
            };
            (low..=high).contains(&value) && (value - low) % step == 0
        })
    }

    pub fn matches(fields: &[String; 5], local: DateTime) -> bool {
        let [minute, hour, day, month, weekday] = fields;
        let in_day = is_in(day, local.day(), 1, 31);
        let in_week = is_in(weekday, local.weekday().to_sunday_zero_offset(), 0, 6);
        let in_days = if day == "*" || weekday == "*" { in_day && in_week } else { in_day || in_week };
        is_in(minute, local.minute(), 0, 59)
            && is_in(hour, local.hour(), 0, 23)
            && is_in(month, local.month(), 1, 12)
            && in_days
    }

    /// The first occurrence after an instant within some days, minute by minute.
    pub fn next_after(fields: &[String; 5], zone: &Zone, after: Timestamp, days: i64) -> Option<Timestamp> {
        let repeats = fields[..2].iter().any(|field| field.starts_with('*'));
        let first = after.as_second().div_euclid(60) + 1;
        (first..first + days * 1_440).find_map(|minute| {
            let now = Timestamp::from_second(minute * 60).unwrap();
            let local = zone.to_local(now);
            if repeats {
                return matches(fields, local).then_some(now);
            }
            // Local times that belong to this minute: its own, unless it is the second pass, and skipped ones.
            let earlier = |minutes| zone.to_local(now - SignedDuration::from_mins(minutes));
            let before = earlier(1);
            let mut skipped = before.checked_add(1.minute()).unwrap();
            while skipped < local {
                if matches(fields, skipped) {
                    return Some(now);
                }
                skipped = skipped.checked_add(1.minute()).unwrap();
            }
            // No clock here is set back by more than an hour.
            let is_first_pass = || (1..=90).all(|minutes| earlier(minutes) != local);
            (matches(fields, local) && is_first_pass()).then_some(now)
        })
    }
}

fn field(min: u8, max: u8) -> impl Strategy<Value = String> {
    let item = prop_oneof![
        3 => Just("*".to_owned()),
        2 => (min..=max).prop_map(|value| value.to_string()),
        1 => (2u8..=max.min(9)).prop_map(|step| format!("*/{step}")),
        1 => (min..=max, 2u8..=max.min(9)).prop_map(|(value, step)| format!("{value}/{step}")),
        1 => (min..=max, min..=max).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (min..=max, min..=max).prop_map(|(a, b)| format!("{a},{b}")),
    ];
    item
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Around clock changes of six zones, and at any other time.
    #[test]
    fn next_occurrences_are_those_of_the_reference(
        fields in (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)),
        zone in prop::sample::select(vec!["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana", "Africa/Casablanca"]),
        change in 0usize..6,
        minutes_before in 0i64..3_000,
    ) {
        const DAYS: i64 = 4;
        let fields = [fields.0, fields.1, fields.2, fields.3, fields.4];
        let zone = Zone::find(zone).unwrap();
        let year = at("2026-01-01T00:00:00Z");
        let mut start = year;
        for _ in 0..change {
            start = zone.regime(start).until.unwrap_or(start);
        }
        let after = start - SignedDuration::from_mins(minutes_before);
        let expected = reference::next_after(&fields, &zone, after, DAYS);
        let end = after + SignedDuration::from_hours(24 * DAYS);
        let found = Cron::parse(&fields.join(" ")).unwrap().next_after(after, &zone).filter(|found| *found <= end);
        prop_assert_eq!(found, expected, "`{}` in {} after {}", fields.join(" "), zone.name(), after);
    }
}
