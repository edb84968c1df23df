//! Names of virtio features, for `--features`.

use thiserror::Error;

use crate::model::DEFAULT_FEATURES;

/// Features that the card may offer, by the names of the virtio specification.
const NAMES: [(&str, u32); 20] = [
    ("csum", 0),
    ("guest_csum", 1),
    ("mtu", 3),
    ("mac", 5),
    ("guest_tso4", 7),
    ("guest_tso6", 8),
    ("host_tso4", 11),
    ("host_tso6", 12),
    ("host_ecn", 13),
    ("mrg_rxbuf", 15),
    ("status", 16),
    ("indirect_desc", 28),
    ("event_idx", 29),
    ("version_1", 32),
    ("access_platform", 33),
    ("order_platform", 36),
    ("notification_data", 38),
    ("ring_reset", 40),
    ("host_uso", 56),
    ("speed_duplex", 63),
];

/// A list of features that is not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FeatureError {
    /// A name that the card does not know.
    #[error("`{0}` is not a feature of the card; there are {names}", names = names())]
    Unknown(String),
    /// Neither `+` nor `-` before the name.
    #[error("write `+{0}` to offer the feature, `-{0}` not to")]
    Sign(String),
}

fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

/// Applies `-name,+name` to what is offered by default.
pub fn parse(text: &str) -> Result<u64, FeatureError> {
    let mut mask = DEFAULT_FEATURES;
    for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        let (on, name) = match item.split_at_checked(1) {
            Some(("+", name)) => (true, name),
            Some(("-", name)) => (false, name),
            _ => return Err(FeatureError::Sign(item.to_owned())),
        };
        let bit = NAMES
            .iter()
            .find(|(known, _)| *known == name.to_ascii_lowercase())
            .map(|(_, bit)| 1_u64 << bit)
            .ok_or_else(|| FeatureError::Unknown(name.to_owned()))?;
        mask = if on { mask | bit } else { mask & !bit };
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_names_are_applied_in_order() {
        assert_eq!(parse(""), Ok(DEFAULT_FEATURES));
        assert_eq!(parse("-mrg_rxbuf,-EVENT_IDX"), Ok(!(1 << 15 | 1 << 29)));
        assert_eq!(parse("-mac,+mac"), Ok(DEFAULT_FEATURES));
        assert_eq!(parse("-guest_tso4,-guest_tso6"), Ok(!(3 << 7)));
    }

    #[test]
    fn mistakes_name_the_remedy() {
        assert_eq!(parse("mac"), Err(FeatureError::Sign("mac".into())));
        assert_eq!(parse("-é"), Err(FeatureError::Unknown("é".into())));
        assert!(
            parse("-tso")
                .expect_err("unknown")
                .to_string()
                .contains("mrg_rxbuf")
        );
    }
}
