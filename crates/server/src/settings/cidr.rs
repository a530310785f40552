//! Networks that may connect.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// A network: an address and the number of leading bits that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    /// Parses `ADDRESS/BITS` or a single address.
    ///
    /// # Errors
    /// A message that says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no network; write ADDRESS/BITS, as 10.0.0.0/8");
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = if bits.is_empty() && !text.contains('/') {
            width
        } else {
            bits.trim().parse().ok().filter(|bits| *bits <= width).ok_or_else(wrong)?
        };
        Ok(Self { address, bits })
    }

    /// Parses each text of a list; empty ones are skipped.
    ///
    /// # Errors
    /// The error of [`Cidr::parse`] for the first invalid text.
    pub fn parse_list(list: &[String]) -> Result<Vec<Self>, String> {
        list.iter().filter(|text| !text.trim().is_empty()).map(|text| Self::parse(text)).collect()
    }

    /// The number of leading bits that count.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether it contains every address.
    pub fn is_everyone(&self) -> bool {
        self.bits == 0
    }

    /// Whether it contains an address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address.to_canonical(), address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let bits =
                    if self.address.is_ipv4() { self.bits } else { self.bits.saturating_sub(96) };
                same_prefix(network.to_bits().into(), address.to_bits().into(), bits, 32)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_prefix(network.to_bits(), address.to_bits(), self.bits, Ipv6Addr::BITS)
            }
            _ => false,
        }
    }
}

fn same_prefix(left: u128, right: u128, bits: u8, width: u32) -> bool {
    let dropped = width.saturating_sub(u32::from(bits));
    (left ^ right).checked_shr(dropped).unwrap_or(0) == 0
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(network: &str, address: &str) -> bool {
        Cidr::parse(network).unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn networks() {
        assert!(within("10.0.0.0/8", "10.200.3.4"));
        assert!(!within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("0.0.0.0/0", "8.8.8.8"));
        assert!(!within("0.0.0.0/0", "::1"));
        assert!(within("127.0.0.1", "127.0.0.1"));
        assert!(!within("127.0.0.1/32", "127.0.0.2"));
        assert!(within("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(within("::ffff:10.0.0.0/104", "10.1.2.3"));
        assert!(within("2001:db8::/32", "2001:db8:1::5"));
        assert!(!within("2001:db8::/32", "2001:db9::5"));
        assert!(within("::/0", "2001:db9::5"));
        for wrong in ["10.0.0.0/33", "10.0.0/8", "x", "::/129", "1.2.3.4/"] {
            assert!(Cidr::parse(wrong).is_err(), "{wrong}");
        }
    }
}
