//! MariaDB's UUID, INET4 and INET6 in its text form.

use std::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use super::Malformed;

/// A UUID, whose bytes are in text order.
pub(super) fn uuid(bytes: &[u8]) -> Result<Arc<str>, Malformed> {
    let mut text = String::with_capacity(36);
    for (index, byte) in padded::<16>(bytes)?.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        write!(text, "{byte:02x}").map_err(|_| Malformed)?;
    }
    Ok(text.into())
}

pub(super) fn inet4(bytes: &[u8]) -> Result<Arc<str>, Malformed> {
    Ok(Ipv4Addr::from(padded::<4>(bytes)?).to_string().into())
}

/// The first of the longest runs of zero groups is abbreviated, even a single group. An IPv4-mapped or IPv4-compatible
/// address ends in IPv4 form.
pub(super) fn inet6(bytes: &[u8]) -> Result<Arc<str>, Malformed> {
    let address = Ipv6Addr::from(padded::<16>(bytes)?);
    let groups = address.segments();
    let (start, length) = longest_zeros(&groups);
    let [.., fifth, _, _] = groups;
    if start == 0 && (length == 6 || length == 5 && fifth == 0xffff) {
        let [.., a, b, c, d] = address.octets();
        let before = if length == 6 { "::" } else { "::ffff:" };
        return Ok(format!("{before}{}", Ipv4Addr::new(a, b, c, d)).into());
    }
    let mut text = String::with_capacity(39);
    let mut place = 0;
    while let Some(group) = groups.get(place) {
        if length > 0 && place == start {
            text.push_str("::");
            place += length;
            continue;
        }
        if !text.is_empty() && !text.ends_with(':') {
            text.push(':');
        }
        write!(text, "{group:x}").map_err(|_| Malformed)?;
        place += 1;
    }
    Ok(text.into())
}

/// The start and length of the longest run of zeros.
fn longest_zeros(groups: &[u16; 8]) -> (usize, usize) {
    let run = |start: usize| groups.iter().skip(start).take_while(|group| **group == 0).count();
    let runs = (0..groups.len()).map(|start| (start, run(start)));
    runs.fold((0, 0), |longest, run| if run.1 > longest.1 { run } else { longest })
}

/// Trailing zeros are not sent.
fn padded<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Malformed> {
    let mut whole = [0; N];
    whole.get_mut(..bytes.len()).ok_or(Malformed)?.copy_from_slice(bytes);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_printed_as_mariadb_does() {
        let inet6 = |text: &str| inet6(&text.parse::<Ipv6Addr>().unwrap().octets()).unwrap();
        for text in ["::", "::1", "1::", "1::2:3:4:5:6:7", "2001:db8::ff00:42:8329", "1:0:0:2::3"] {
            assert_eq!(&*inet6(text), text);
        }
        assert_eq!(&*inet6("::ffff:192.0.2.128"), "::ffff:192.0.2.128");
        assert_eq!(&*inet6("::192.0.2.128"), "::192.0.2.128");
        assert_eq!(&*inet6("::1:2"), "::0.1.0.2");
        assert_eq!(&*inet4(b"\x7f\0\0\x01").unwrap(), "127.0.0.1");
        assert_eq!(&*inet4(b"\x7f").unwrap(), "127.0.0.0");
        assert!(inet4(&[0; 5]).is_err());
        assert_eq!(&*uuid(b"\x12\x3e").unwrap(), "123e0000-0000-0000-0000-000000000000");
    }
}
