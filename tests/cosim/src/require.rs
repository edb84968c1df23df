//! What may be missing on a machine, and when that is a failure.

use std::env;

use thiserror::Error;

/// Something that tests need and that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Captures from outside the repository.
    Captures,
    /// Kernels and tools to run guests with.
    Guests,
    /// A toolchain for the firmware of the control processor.
    Firmware,
}

impl Resource {
    const ALL: [Self; 3] = [Self::Captures, Self::Guests, Self::Firmware];

    /// Its name in `FERRONIC_REQUIRE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Captures => "captures",
            Self::Guests => "guests",
            Self::Firmware => "firmware",
        }
    }
}

/// `FERRONIC_REQUIRE` names something unknown.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("FERRONIC_REQUIRE names {0:?}: it may list captures, guests and firmware, with commas")]
pub struct RequireError(String);

/// Whether the environment says that tests must not be skipped for want of `resource`.
///
/// # Errors
/// When `FERRONIC_REQUIRE` has a word that is not a [`Resource`].
pub fn is_required(resource: Resource) -> Result<bool, RequireError> {
    listed(&env::var("FERRONIC_REQUIRE").unwrap_or_default(), resource)
}

/// Whether the longer versions of tests are asked for (`cargo xtask test --nightly`).
pub fn nightly() -> bool {
    env::var_os("FERRONIC_NIGHTLY").is_some_and(|value| !value.is_empty() && value != "0")
}

fn listed(list: &str, resource: Resource) -> Result<bool, RequireError> {
    let mut found = false;
    for word in list
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        if !Resource::ALL.iter().any(|known| known.name() == word) {
            return Err(RequireError(word.to_owned()));
        }
        found |= word == resource.name();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn require_list_names_resources() {
        assert_eq!(listed("", Resource::Captures), Ok(false));
        assert_eq!(listed("guests, captures", Resource::Captures), Ok(true));
        assert_eq!(listed("guests", Resource::Captures), Ok(false));
    }

    #[test]
    fn require_list_with_unknown_word_is_refused() {
        let refused = listed("captures,gests", Resource::Captures);
        assert_eq!(refused, Err(RequireError("gests".to_owned())));
    }
}
