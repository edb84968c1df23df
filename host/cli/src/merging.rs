//! Options of commands that receive: whether the card merges TCP segments.

use std::time::Duration;

use clap::Args;
use ferronic::lro::Profile;
use ferronic::{Device, DeviceConfig, LroOptions, LroRequest};
use serde_json::{Value, json};

use crate::error::CliError;

/// How the card is to merge.
#[derive(Args, Clone, Debug)]
pub struct LroArgs {
    /// Rules by which the card merges TCP segments; if not given, and the card cannot, it does not.
    #[arg(long, value_enum, value_name = "PROFILE")]
    lro: Option<Rules>,
    /// Longest wait of the card for the next segment; 100 if not given.
    #[arg(long, value_name = "US")]
    lro_gap_us: Option<u64>,
    /// Longest that the card holds a segment; 400 if not given.
    #[arg(long, value_name = "US")]
    lro_hold_us: Option<u64>,
    /// Longest packet that the card merges, 576 to 65535 bytes; 65535 if not given.
    #[arg(long, value_name = "BYTES")]
    lro_max_bytes: Option<u32>,
    /// With fewer buffers than this in a queue the card delivers what it holds for it, 0 to 64, 0 for
    /// not before there is none; 0 if not given.
    #[arg(long, value_name = "BUFFERS")]
    lro_low_water: Option<u32>,
}

/// Profiles of merging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Rules {
    /// None are merged.
    Off,
    /// What is merged can be cut back into exactly what was on the wire.
    Strict,
    /// More is merged, and cannot be cut back; a card that has it is needed.
    Relaxed,
}

impl Rules {
    const fn profile(self) -> Profile {
        match self {
            Self::Off => Profile::Off,
            Self::Strict => Profile::Strict,
            Self::Relaxed => Profile::Relaxed,
        }
    }
}

impl LroArgs {
    /// What is asked of the driver, where `default` is the profile of the command.
    pub fn request(&self, default: Profile) -> Result<LroRequest, CliError> {
        let usual = LroOptions::default();
        let options = LroOptions {
            profile: self.lro.map_or(default, Rules::profile),
            gap: self.lro_gap_us.map_or(usual.gap, Duration::from_micros),
            hold: self.lro_hold_us.map_or(usual.hold, Duration::from_micros),
            max_bytes: self.lro_max_bytes.unwrap_or(usual.max_bytes),
            low_water: self.lro_low_water.unwrap_or(usual.low_water),
        };
        let set = self.lro_gap_us.is_some()
            || self.lro_hold_us.is_some()
            || self.lro_max_bytes.is_some()
            || self.lro_low_water.is_some();
        if options.profile != Profile::Off {
            return Ok(if set || self.lro.is_some() {
                LroRequest::Needed(options)
            } else {
                LroRequest::IfThere(options)
            });
        }
        if set {
            return Err(CliError::Usage(
                "--lro-gap-us, --lro-hold-us, --lro-max-bytes and --lro-low-water mean nothing \
                 without merging: give --lro strict, too"
                    .into(),
            ));
        }
        Ok(LroRequest::Off)
    }

    /// `config`, with it.
    pub fn apply(&self, default: Profile, config: DeviceConfig) -> Result<DeviceConfig, CliError> {
        Ok(DeviceConfig {
            lro: self.request(default)?,
            ..config
        })
    }
}

/// How an opened card merges, for people.
pub fn words(device: &Device) -> Result<String, CliError> {
    Ok(match device.lro()? {
        None => "no (not asked for, or this card does not have it)".into(),
        Some(options) => format!(
            "{}, gap {} us, hold {} us, at most {} bytes, low water {}",
            options.profile,
            options.gap.as_micros(),
            options.hold.as_micros(),
            options.max_bytes,
            options.low_water
        ),
    })
}

/// The same as parameters of figures.
pub fn params(device: &Device) -> Result<Value, CliError> {
    Ok(match device.lro()? {
        None => json!({"lro": Profile::Off.name()}),
        Some(options) => json!({
            "lro": options.profile.name(),
            "lro_gap_us": options.gap.as_micros() as u64,
            "lro_hold_us": options.hold.as_micros() as u64,
            "lro_max_bytes": options.max_bytes,
            "lro_low_water": options.low_water,
        }),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        lro: LroArgs,
    }

    fn request(line: &str, default: Profile) -> Result<LroRequest, CliError> {
        let words = ["x"].into_iter().chain(line.split_whitespace());
        Line::parse_from(words).lro.request(default)
    }

    #[test]
    fn merging_is_needed_only_if_it_was_asked_for() {
        let usual = LroOptions::default();
        for (line, default, wanted) in [
            ("", Profile::Strict, LroRequest::IfThere(usual)),
            ("", Profile::Off, LroRequest::Off),
            ("--lro off", Profile::Strict, LroRequest::Off),
            ("--lro strict", Profile::Strict, LroRequest::Needed(usual)),
            ("--lro strict", Profile::Off, LroRequest::Needed(usual)),
            (
                "--lro-gap-us 250 --lro-hold-us 8000 --lro-max-bytes 9000 --lro-low-water 8",
                Profile::Strict,
                LroRequest::Needed(LroOptions {
                    gap: Duration::from_micros(250),
                    hold: Duration::from_millis(8),
                    max_bytes: 9_000,
                    low_water: 8,
                    ..usual
                }),
            ),
        ] {
            let found = request(line, default).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!(found, wanted, "{line}");
        }
        for line in [
            "--lro off --lro-gap-us 1",
            "--lro off --lro-max-bytes 999",
            "--lro off --lro-low-water 1",
        ] {
            let error = request(line, Profile::Strict).expect_err(line);
            assert!(error.to_string().contains("--lro strict"), "{error}");
        }
    }
}
