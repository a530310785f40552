//! IP addresses, UUIDs and digests.

use std::net::{Ipv4Addr, Ipv6Addr};

use remora_mysql::ErrorCode;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::super::{
    call::{Call, TypeContext},
    encoding,
    function::Definition,
    md5,
    types::ExprType,
    value::SqlValue,
};
use crate::{Error, Result};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("inet_aton", 1, 1, uint_type, inet_aton),
    Definition::new("inet_ntoa", 1, 1, text::<31>, inet_ntoa),
    Definition::new("inet6_aton", 1, 1, binary::<16>, inet6_aton),
    Definition::new("inet6_ntoa", 1, 1, text::<39>, inet6_ntoa),
    Definition::new("is_ipv4", 1, 1, truth_type, |_, args| {
        checked(args, |text| text.parse::<Ipv4Addr>().is_ok())
    }),
    Definition::new("is_ipv6", 1, 1, truth_type, |_, args| {
        checked(args, |text| text.parse::<Ipv6Addr>().is_ok())
    }),
    Definition::new("is_ipv4_compat", 1, 1, truth_type, |_, args| {
        mapped(args, |bytes| bytes.starts_with(&[0; 12]) && *bytes != [0; 16])
    }),
    Definition::new("is_ipv4_mapped", 1, 1, truth_type, |_, args| {
        mapped(args, |bytes| bytes.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]))
    }),
    Definition::new("is_uuid", 1, 1, truth_type, is_uuid),
    Definition::new("uuid_to_bin", 1, 2, binary::<16>, uuid_to_bin),
    Definition::new("bin_to_uuid", 1, 2, text::<36>, bin_to_uuid),
    Definition::new("sha2", 2, 2, sha2_type, sha2),
    Definition::new("sha1", 1, 1, sha1_type, |_, args| {
        digested(args, |bytes| Sha1::digest(bytes).to_vec())
    }),
    Definition::new("md5", 1, 1, md5_type, |_, args| {
        digested(args, |bytes| md5::digest(bytes).to_vec())
    }),
];

fn uint_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::uint(21))
}

fn truth_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::truth())
}

fn text<const LENGTH: u32>(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(LENGTH, typing.collation))
}

fn binary<const LENGTH: u32>(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(LENGTH))
}

fn checked<'a>(args: &[SqlValue<'a>], check: fn(&str) -> bool) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string);
    Ok(SqlValue::or_null(text, |text| SqlValue::truth(check(&text))))
}

fn mapped<'a>(args: &[SqlValue<'a>], check: fn(&[u8]) -> bool) -> Result<SqlValue<'a>> {
    let bytes = args.first().and_then(SqlValue::octets);
    Ok(SqlValue::or_null(bytes, |bytes| SqlValue::truth(bytes.len() == 16 && check(&bytes))))
}

/// Parses `1.2.3.4` or short forms such as `127.1`.
fn inet_aton<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(text) = args.first().and_then(SqlValue::string) else { return Ok(SqlValue::Null) };
    let parts: Option<Vec<u64>> = text
        .split('.')
        .map(|part| part.parse::<u64>().ok().filter(|number| *number < 256))
        .collect();
    let number = parts.filter(|parts| (1..=4).contains(&parts.len())).map(|parts| {
        let (last, first) = parts.split_last().map_or((0, &[][..]), |(last, first)| (*last, first));
        let high = first.iter().fold(0, |number, part| number << 8 | part);
        high << (8 * (4 - first.len())) | last
    });
    if number.is_none() {
        call.warn(ErrorCode::WrongValueForFunction, || {
            format!("Incorrect string value: ''{text}'' for function inet_aton")
        });
    }
    Ok(SqlValue::or_null(number, SqlValue::Uint))
}

fn inet_ntoa<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(value) = args.first().filter(|value| !value.is_null()) else {
        return Ok(SqlValue::Null);
    };
    let number = u32::try_from(value.integer(call)).ok();
    Ok(SqlValue::or_null(number, |number| SqlValue::text(Ipv4Addr::from(number).to_string())))
}

fn inet6_aton<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(text) = args.first().and_then(SqlValue::string) else { return Ok(SqlValue::Null) };
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(SqlValue::bytes(address.octets()));
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(SqlValue::bytes(address.octets()));
    }
    call.warn(ErrorCode::WrongValueForFunction, || {
        format!("Incorrect string value: ''{text}'' for function inet6_aton")
    });
    Ok(SqlValue::Null)
}

fn inet6_ntoa<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    let four = <[u8; 4]>::try_from(bytes.as_ref()).map(|octets| Ipv4Addr::from(octets).to_string());
    let six = <[u8; 16]>::try_from(bytes.as_ref()).map(|octets| Ipv6Addr::from(octets).to_string());
    Ok(SqlValue::or_null(four.or(six).ok(), SqlValue::text))
}

/// Parses a UUID, with or without dashes and braces.
fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let dashed = inner.len() == 36
        && inner
            .char_indices()
            .all(|(at, letter)| (letter == '-') == matches!(at, 8 | 13 | 18 | 23));
    let plain = inner.len() == 32 && inner.len() == text.len();
    if !dashed && !plain {
        return None;
    }
    let bytes = encoding::from_hex(&inner.replace('-', ""))?;
    <[u8; 16]>::try_from(bytes).ok()
}

fn is_uuid<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let text = args.first().and_then(SqlValue::string);
    Ok(SqlValue::or_null(text, |text| SqlValue::truth(uuid_bytes(&text).is_some())))
}

fn wrong_uuid(text: &str, function: &str) -> Error {
    let message = format!("Incorrect string value: '{text}' for function {function}");
    Error::new(ErrorCode::WrongValueForFunction, message)
}

fn swapped(call: &Call<'_>, args: &[SqlValue<'_>]) -> bool {
    args.get(1).and_then(|swap| swap.is_true(call)).unwrap_or(false)
}

fn uuid_to_bin<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(text) = args.first().and_then(SqlValue::string) else { return Ok(SqlValue::Null) };
    let bytes = uuid_bytes(&text).ok_or_else(|| wrong_uuid(&text, "uuid_to_bin"))?;
    let order = [6, 7, 4, 5, 0, 1, 2, 3];
    let mut out = bytes;
    if swapped(call, args) {
        for (slot, from) in out.iter_mut().zip(order) {
            *slot = bytes.get(from).copied().unwrap_or(0);
        }
    }
    Ok(SqlValue::bytes(out))
}

fn bin_to_uuid<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    let Ok(bytes) = <[u8; 16]>::try_from(bytes.as_ref()) else {
        return Err(wrong_uuid(&String::from_utf8_lossy(&bytes), "bin_to_uuid"));
    };
    let order = [4, 5, 6, 7, 2, 3, 0, 1];
    let mut out = bytes;
    if swapped(call, args) {
        for (slot, from) in out.iter_mut().zip(order) {
            *slot = bytes.get(from).copied().unwrap_or(0);
        }
    }
    let digits = encoding::hex(&out).to_lowercase();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or("");
    let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
    Ok(SqlValue::text(parts.join("-")))
}

fn sha1_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(40, typing.collation))
}

fn md5_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(32, typing.collation))
}

fn digested<'a>(args: &[SqlValue<'a>], digest: fn(&[u8]) -> Vec<u8>) -> Result<SqlValue<'a>> {
    let bytes = args.first().and_then(SqlValue::octets);
    Ok(SqlValue::or_null(bytes, |bytes| {
        SqlValue::text(encoding::hex(&digest(&bytes)).to_lowercase())
    }))
}

fn sha2_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = match typing.constant(1) {
        Some(224) => 56,
        Some(384) => 96,
        Some(512) => 128,
        Some(0 | 256) => 64,
        _ => 128,
    };
    Ok(ExprType::text(length, typing.collation))
}

fn sha2<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, bits] = args else { return Ok(SqlValue::Null) };
    if bits.is_null() {
        return Ok(SqlValue::Null);
    }
    let Some(bytes) = value.octets() else { return Ok(SqlValue::Null) };
    let digest = match bits.count(call) {
        224 => Sha224::digest(&bytes).to_vec(),
        0 | 256 => Sha256::digest(&bytes).to_vec(),
        384 => Sha384::digest(&bytes).to_vec(),
        512 => Sha512::digest(&bytes).to_vec(),
        _ => return Ok(SqlValue::Null),
    };
    Ok(SqlValue::text(encoding::hex(&digest).to_lowercase()))
}
