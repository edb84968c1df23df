//! The address of a PCI function, as the kernel writes it.

use std::fmt;
use std::str::FromStr;

/// Domain, bus, device and function: `0000:01:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl FromStr for PciAddress {
    type Err = String;

    /// Takes `0000:01:00.0`, or `01:00.0` in domain 0.
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (rest, function) = text.rsplit_once('.')?;
            let (rest, device) = rest.rsplit_once(':')?;
            let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
            let hex = |part: &str, max: u32| {
                let digits = part.bytes().all(|byte| byte.is_ascii_hexdigit());
                let value = u32::from_str_radix(part, 16).ok()?;
                (digits && value <= max).then_some(value)
            };
            Some(Self {
                domain: hex(domain, u32::MAX)?,
                bus: hex(bus, 0xff)? as u8,
                device: hex(device, 0x1f)? as u8,
                function: hex(function, 7)? as u8,
            })
        };
        parse().ok_or_else(|| {
            format!("`{text}` is not the address of a PCI function, like 0000:01:00.0")
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_domain_and_nothing_else_is() {
        let address = |text: &str| text.parse::<PciAddress>().map(|a| a.to_string());
        assert_eq!(address("0000:01:1f.7").unwrap(), "0000:01:1f.7");
        assert_eq!(address("1:2.3").unwrap(), "0000:01:02.3");
        assert_eq!(address("10000:e1:00.0").unwrap(), "10000:e1:00.0");
        for wrong in [
            "",
            "eth0",
            "01:00",
            "01:20.0",
            "01:00.8",
            "100:00.0",
            "01:+1.0",
            "x:1:0.0",
            "::.",
            "0:0:0:0.0",
            "01:00.0/..",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
