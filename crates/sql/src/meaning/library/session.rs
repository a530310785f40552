//! Functions that read the session, random functions, and user variables.

use remora_engine::Value;
use remora_mysql::Collation;

use super::super::{
    call::{Call, TypeContext},
    function::{Caching, Definition},
    temporal::Moment,
    types::{ExprType, MAX_DIGITS, UNBOUNDED, coercibility},
    value::SqlValue,
};
use crate::{Result, state::Generator};

/// Reads a user variable at run time. Arguments: its name and a value of its type.
pub(crate) const READ_VARIABLE: &str = "get_user_variable";
/// LAST_INSERT_ID with an argument.
pub(crate) const GIVE_LAST_INSERT_ID: &str = "give_last_insert_id";
/// Assigns a user variable. Arguments: its name and the value.
pub(crate) const ASSIGN_VARIABLE: &str = "set_user_variable";

/// The characters of a text variable, as MySQL reports them.
const LONG_TEXT: u32 = 67_108_860;

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("database", 0, 0, database_type, database),
    Definition::new("user", 0, 0, user_type, user).cached(Caching::PerStatement),
    // There are no roles: rights are granted to accounts.
    Definition::new("current_role", 0, 0, user_type, |_, _| Ok(SqlValue::text("NONE"))),
    Definition::new("version", 0, 0, version_type, version),
    Definition::new("connection_id", 0, 0, uint_type, connection_id).cached(Caching::PerStatement),
    Definition::new("last_insert_id", 0, 1, uint_type, last_insert_id)
        .cached(Caching::PerStatement),
    Definition::new(GIVE_LAST_INSERT_ID, 1, 1, given_type, give_last_insert_id).volatile(),
    Definition::new("found_rows", 0, 0, int_type, found_rows).cached(Caching::PerStatement),
    Definition::new("row_count", 0, 0, int_type, row_count).cached(Caching::PerStatement),
    Definition::new("rand", 0, 1, rand_type, rand).volatile(),
    Definition::new("rand_sequence", 3, 3, rand_type, rand_sequence).volatile(),
    Definition::new("this_row", 0, 0, int_type, |_, _| Ok(SqlValue::Int(0))).volatile(),
    Definition::new("uuid", 0, 0, uuid_type, uuid).volatile(),
    Definition::new("uuid_short", 0, 0, uint_type, uuid_short).volatile(),
    Definition::new("random_bytes", 1, 1, random_bytes_type, random_bytes).volatile(),
    Definition::new("benchmark", 2, 2, truth_type, |_, _| Ok(SqlValue::Int(0))),
    Definition::new(READ_VARIABLE, 1, 2, variable_type, get_variable).volatile(),
    Definition::new(ASSIGN_VARIABLE, 2, 2, set_type, set_variable).volatile(),
    Definition::new("name_const", 2, 2, second_type, |_, args| {
        Ok(args.get(1).cloned().unwrap_or(SqlValue::Null))
    }),
];

/// The type of texts from the server, which has the system collation.
fn system_text(characters: u32) -> ExprType {
    let kind = ExprType::text(characters, Collation::UTF8MB4_0900_AI_CI);
    ExprType { collation: Collation::UTF8MB3_GENERAL_CI, ..kind }
        .with_coercibility(coercibility::SYSTEM)
}

fn database_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(system_text(64))
}

fn user_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(system_text(288))
}

fn version_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(system_text(16).not_null())
}

fn uint_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(21).not_null())
}

fn int_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21).not_null())
}

fn truth_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::truth())
}

fn second_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(typing.get(1))
}

fn database<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(call.context.and_then(|context| context.database.clone()), SqlValue::text))
}

fn user<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(call.session(), |context| SqlValue::text(context.user.clone())))
}

fn version<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(call.context, |context| {
        SqlValue::text(context.shared.settings.version.clone())
    }))
}

fn connection_id<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::Uint(call.session().map_or(0, |context| context.connection_id)))
}

fn last_insert_id<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::Uint(call.session().map_or(0, |context| context.last_insert_id.get())))
}

fn given_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(21))
}

/// LAST_INSERT_ID(value). NULL is stored as 0.
fn give_last_insert_id<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let value = args.first().filter(|value| !value.is_null());
    let number = value.map(|value| value.integer(call));
    if let Some(context) = call.session() {
        // As in MySQL, a negative value keeps its bits as an unsigned number.
        context.last_insert_id.give(number.unwrap_or(0) as u64);
    }
    Ok(number.map_or(SqlValue::Null, |number| SqlValue::Uint(number as u64)))
}

fn found_rows<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::whole(call.session().map_or(0, |context| i128::from(context.found_rows))))
}

fn row_count<'a>(call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::Int(call.session().map_or(-1, |context| context.row_count)))
}

fn rand_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::double().not_null())
}

/// RAND without a seed, or with a seed that differs by row.
fn rand<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::Double(match args.first() {
        Some(seed) => Generator::seeded(seed.integer(call) as u32).next(),
        None => (random_bits() >> 11) as f64 / (1u64 << 53) as f64,
    }))
}

/// RAND with a constant seed. Also given is the call's place in the statement, as its sequence
/// continues over the rows.
fn rand_sequence<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (Some(context), [seed, place, _]) = (call.session(), args) else { return rand(call, args) };
    let begin = || Generator::seeded(seed.integer(call) as u32);
    Ok(SqlValue::Double(context.chances.next(place.integer(call), begin)))
}

/// 64 unpredictable bits.
fn random_bits() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn uuid_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(system_text(36))
}

fn uuid<'a>(_call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let micros = jiff::Timestamp::now().as_microsecond();
    // 100 ns ticks since 15 October 1582.
    let ticks = (micros as u64).wrapping_mul(10).wrapping_add(0x01b2_1dd2_1381_4000);
    let random = random_bits();
    let (low, middle) = (ticks as u32, (ticks >> 32) as u16);
    let high = (ticks >> 48) as u16 & 0x0fff | 0x1000;
    let sequence = (random >> 48) as u16 & 0x3fff | 0x8000;
    let node = random & 0xffff_ffff_ffff | 0x0100_0000_0000;
    Ok(SqlValue::text(format!("{low:08x}-{middle:04x}-{high:04x}-{sequence:04x}-{node:012x}")))
}

fn uuid_short<'a>(_call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let second = jiff::Timestamp::now().as_second() as u64 & 0xffff_ffff;
    Ok(SqlValue::Uint(
        (1 << 56) | (second << 24) | COUNT.fetch_add(1, Ordering::Relaxed) & 0xff_ffff,
    ))
}

fn random_bytes_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing.constant(0).and_then(|length| u32::try_from(length).ok()).unwrap_or(1_024);
    Ok(ExprType::binary(length))
}

fn random_bytes<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(length) = args.first().filter(|length| !length.is_null()) else {
        return Ok(SqlValue::Null);
    };
    let length = usize::try_from(length.count(call)).unwrap_or(0);
    if !(1..=1_024).contains(&length) {
        let message = remora_mysql::messages::value_out_of_range("length", "random_bytes");
        return Err(crate::Error::new(remora_mysql::ErrorCode::NumberOutOfRange, message));
    }
    let bytes = std::iter::repeat_with(|| random_bits().to_le_bytes()).flatten().take(length);
    Ok(SqlValue::bytes(bytes.collect::<Vec<u8>>()))
}

fn variable_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = match typing.types.get(1) {
        Some(kind) if kind.is_null() => ExprType::null(),
        Some(kind) if kind.is_integer() && kind.unsigned => ExprType::uint(20),
        Some(kind) if kind.is_integer() => ExprType::int(21),
        Some(kind) if kind.is_float() => ExprType::double(),
        Some(kind) if kind.is_decimal() => {
            ExprType::decimal(u32::from(MAX_DIGITS), u32::from(kind.scale()))
        }
        Some(kind) if kind.is_string() && !kind.is_text() => {
            ExprType::binary(LONG_TEXT).with_coercibility(coercibility::IMPLICIT)
        }
        Some(kind) if kind.length > 0 => text_kind(LONG_TEXT, typing.collation),
        _ => text_kind(16_383, typing.collation),
    };
    Ok(kind)
}

fn text_kind(characters: u32, collation: Collation) -> ExprType {
    ExprType::text(characters, collation).with_coercibility(coercibility::IMPLICIT)
}

/// Variables hold numbers, bytes and texts only.
fn set_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(1);
    let not_null = kind.not_null;
    let made = match () {
        () if kind.is_null() => ExprType::text(UNBOUNDED, typing.collation),
        () if kind.is_integer() && kind.unsigned => ExprType::uint(kind.length),
        () if kind.is_integer() => ExprType::int(kind.length),
        () if kind.is_float() => ExprType::double(),
        () if kind.is_decimal() => kind,
        () if kind.is_string() && kind.members.is_none() => kind,
        () if kind.is_string() => text_kind(kind.length, kind.collation),
        () => text_kind(kind.length, typing.collation),
    };
    Ok(ExprType { not_null, ..made })
}

fn get_variable<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let (Some(context), Some(name)) = (call.session(), args.first().and_then(SqlValue::string))
    else {
        return Ok(SqlValue::Null);
    };
    Ok(of_engine(&context.user_variables.get(&name)))
}

fn set_variable<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [name, value] = args else { return Ok(SqlValue::Null) };
    if let (Some(context), Some(name)) = (call.session(), name.string()) {
        context.user_variables.set(&name, to_engine(value))?;
    }
    Ok(value.clone())
}

/// Converts an engine value to an expression value.
pub(crate) fn of_engine(value: &Value) -> SqlValue<'static> {
    match value {
        Value::Null => SqlValue::Null,
        Value::Int(number) | Value::Timestamp(number) => SqlValue::Int(*number),
        Value::Uint(number) => SqlValue::Uint(*number),
        Value::Float(number) => SqlValue::Double(*number),
        Value::Decimal(number) => {
            SqlValue::Dec(super::super::decimal::Dec::parse_prefix(number.as_str()).0)
        }
        Value::Bool(truth) => SqlValue::truth(*truth),
        Value::Text(text) => SqlValue::text(text.to_string()),
        Value::Json(text) => SqlValue::text(text.to_string()),
        Value::Bytes(bytes) => SqlValue::bytes(bytes.to_vec()),
        Value::Date(date) => SqlValue::Date(Moment::date(date.year, date.month, date.day)),
        Value::DateTime(moment) => {
            let date = Moment::date(moment.date.year, moment.date.month, moment.date.day);
            SqlValue::DateTime(Moment { micros: moment.micros as i64, ..date }, 6)
        }
        Value::Time(micros) => SqlValue::Time(*micros, 6),
    }
}

/// Converts an expression value to the value that a user variable stores.
fn to_engine(value: &SqlValue<'_>) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Int(number) => Value::Int(*number),
        SqlValue::Uint(number) => Value::Uint(*number),
        SqlValue::Float(number) => Value::Float(f64::from(*number)),
        SqlValue::Double(number) => Value::Float(*number),
        SqlValue::Dec(number) => {
            match remora_engine::Decimal::from_canonical(&number.to_string()) {
                Some(number) => Value::Decimal(number),
                None => Value::Text(number.to_string().into()),
            }
        }
        SqlValue::Bytes(bytes) => Value::Bytes(bytes.to_vec().into()),
        value => Value::Text(value.string().unwrap_or_default().into_owned().into()),
    }
}
