//! Packed structs of the RTL's packages, read from the packages themselves.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::Bits;

const PACKAGES: &[&str] = &[
    include_str!("../../../rtl/common/ferronic_pkg.sv"),
    include_str!("../../../rtl/pcie/pcie_pkg.sv"),
    include_str!("../../../rtl/virtio/vq_pkg.sv"),
    include_str!("../../../rtl/lro/lro_pkg.sv"),
];

/// Where the fields of a packed struct are.
#[derive(Debug, Default)]
pub struct Layout {
    /// Bits in all.
    pub width: u32,
    fields: BTreeMap<String, (u32, u32)>,
}

impl Layout {
    /// A value with the given fields, all others 0.
    ///
    /// # Panics
    ///
    /// If there is no such field: the test is wrong.
    pub fn pack(&self, fields: &[(&str, u64)]) -> Bits {
        let mut bits = Bits::ZERO;
        for (name, value) in fields {
            let (low, width) = self.field(name);
            bits.set(low, width, *value);
        }
        bits
    }

    /// One field of a value.
    ///
    /// # Panics
    ///
    /// If there is no such field: the test is wrong.
    pub fn get(&self, bits: &Bits, name: &str) -> u64 {
        let (low, width) = self.field(name);
        bits.get(low, width)
    }

    fn field(&self, name: &str) -> (u32, u32) {
        match self.fields.get(name) {
            Some(field) => *field,
            None => panic!("no field {name}: there are {:?}", self.fields.keys()),
        }
    }
}

/// The layout of a struct type, for instance `vq_seg_t`.
///
/// # Panics
///
/// If no package has such a type: the test is wrong.
pub fn layout(name: &str) -> &'static Layout {
    static LAYOUTS: OnceLock<BTreeMap<String, Layout>> = OnceLock::new();
    let layouts = LAYOUTS.get_or_init(|| parse(PACKAGES));
    match layouts.get(name) {
        Some(layout) => layout,
        None => panic!("no struct {name}: there are {:?}", layouts.keys()),
    }
}

/// Reads every packed struct; fields are `logic`, `logic [a:b]`, `qid_t` or a type named before.
fn parse(packages: &[&str]) -> BTreeMap<String, Layout> {
    let mut widths = BTreeMap::from([("logic".to_owned(), 1), ("qid_t".to_owned(), 7)]);
    let mut layouts = BTreeMap::new();
    for text in packages {
        // The type that is open: None outside, no fields for an enumeration.
        let mut open: Option<(u32, Vec<(String, u32)>)> = None;
        for line in text.lines() {
            let line = line.split("//").next().unwrap_or("").trim();
            let range = ranges(line);
            if line.starts_with("typedef logic")
                && let Some(name) = line
                    .strip_suffix(';')
                    .and_then(|l| l.split(' ').next_back())
                && let Some(width) = range
            {
                widths.insert(name.to_owned(), width);
            } else if line.starts_with("typedef struct packed") {
                open = Some((0, Vec::new()));
            } else if line.starts_with("typedef enum logic") {
                open = Some((range.unwrap_or(1), Vec::new()));
            } else if let Some(name) = line.strip_prefix('}') {
                let name = name.trim().trim_end_matches(';').to_owned();
                let Some((enumeration, fields)) = open.take() else {
                    continue;
                };
                let mut layout = Layout {
                    width: enumeration,
                    ..Layout::default()
                };
                for (field, width) in fields.into_iter().rev() {
                    layout.fields.insert(field, (layout.width, width));
                    layout.width += width;
                }
                widths.insert(name.clone(), layout.width);
                layouts.insert(name, layout);
            } else if let Some((0, fields)) = &mut open
                && let Some(field) = line.strip_suffix(';')
                && let (Some(kind), Some(name)) = (
                    field.split([' ', '[']).next(),
                    field.split([' ', ']']).next_back(),
                )
            {
                let width = range.or_else(|| widths.get(kind).copied()).unwrap_or(0);
                fields.push((name.to_owned(), width));
            }
        }
    }
    layouts
}

/// Bits of `[a:b]`, or of `[a:b][c:d]`, if they are numbers.
fn ranges(line: &str) -> Option<u32> {
    let mut bits = None;
    for range in line.split('[').skip(1) {
        let (high, low) = range.split_once(']')?.0.split_once(':')?;
        let (high, low): (u32, u32) = (high.trim().parse().ok()?, low.trim().parse().ok()?);
        bits = Some(bits.unwrap_or(1) * (high + 1 - low));
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_packages() {
        let segment = layout("vq_seg_t");
        assert_eq!(segment.width, 117);
        assert_eq!(segment.field("addr"), (0, 64));
        assert_eq!(segment.field("none"), (115, 1));
        assert_eq!(layout("vq_rd_t").width, 121);
        assert_eq!(layout("hash_word_t").width, 73);
        assert_eq!(layout("mem_req_t").field("addr"), (18, 62));
        assert_eq!(layout("vq_head_t").width, 108);
        assert_eq!(layout("dma_wr_cmd_t").width, 96);
    }
}
