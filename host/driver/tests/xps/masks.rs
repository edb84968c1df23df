//! Masks in the forms of sysfs.

use std::collections::BTreeSet;

use ferronic::xps::{Mask, MaskError};
use proptest::prelude::*;

use crate::support::seeds;

fn hex(text: &str, bits: usize) -> Result<Vec<usize>, MaskError> {
    Ok(Mask::from_hex(text, bits)?.iter().collect())
}

fn list(text: &str, bits: usize) -> Result<Vec<usize>, MaskError> {
    Ok(Mask::from_list(text, bits)?.iter().collect())
}

#[test]
fn hex_masks_are_read_as_linux_reads_them() {
    assert_eq!(hex("f", 8), Ok(vec![0, 1, 2, 3]));
    assert_eq!(hex("00000001,80000000", 64), Ok(vec![31, 32]));
    assert_eq!(hex("1,00000000\n", 33), Ok(vec![32]));
    // Leading zeros of a group may be missing, its case does not matter.
    assert_eq!(hex("A,b", 64), Ok(vec![0, 1, 3, 33, 35]));
    // From the text of Linux: such grouping is allowed, and empty is empty.
    for text in ["1,,5", " 1,5 ", ",1 5,", "1,5\nff"] {
        assert_eq!(hex(text, 64), Ok(vec![0, 2, 32]), "{text:?}");
    }
    for text in ["", ",", "\n", " , ", "0", "00000000"] {
        assert_eq!(hex(text, 16), Ok(vec![]), "{text:?}");
    }
}

#[test]
fn hex_masks_that_are_none_are_refused_with_cause_and_remedy() {
    let found = |found| MaskError::Digit { found };
    assert_eq!(hex("0xff", 16), Err(found('x')));
    assert_eq!(hex("0-3", 16), Err(found('-')));
    assert_eq!(hex("z00000001", 64), Err(found('z')));
    let beyond = |number, bits| MaskError::Beyond { number, bits };
    assert_eq!(hex("100", 8), Err(beyond(8, 8)));
    assert_eq!(hex("8,0", 35), Err(beyond(35, 35)));
    let group = "100000000".to_owned();
    assert_eq!(hex("100000000", 64), Err(MaskError::Group { group }));
    // Zeros too many are refused by Linux, too.
    let groups = MaskError::Groups {
        groups: 2,
        limit: 1,
        bits: 8,
    };
    assert_eq!(hex("0,1", 8), Err(groups));
    let text = |text, bits| hex(text, bits).unwrap_err().to_string();
    assert_eq!(text("100", 8), "8 is not there: there are 0 to 7");
    assert_eq!(text("2", 1), "1 is not there: there is only 0");
    assert!(text("0xff", 16).contains("without 0x"));
    assert!(text("0,1", 8).contains("leave out the first"));
}

#[test]
fn lists_are_read_as_linux_reads_them() {
    assert_eq!(list("0-3,7", 8), Ok(vec![0, 1, 2, 3, 7]));
    assert_eq!(list("7, 0-1\n9", 8), Ok(vec![0, 1, 7]));
    assert_eq!(list(" \n", 8), Ok(vec![]));
    assert_eq!(list("5-5,4", 8), Ok(vec![4, 5]));
    assert_eq!(list("all", 3), Ok(vec![0, 1, 2]));
    assert_eq!(list("N,1-N", 4), Ok(vec![1, 2, 3]));
    // The example in Linux's documentation.
    let of_1024 = list("0-1023:2/256", 1024);
    assert_eq!(of_1024, Ok(vec![0, 1, 256, 257, 512, 513, 768, 769]));
    assert_eq!(list("1-9:3/5", 10), Ok(vec![1, 2, 3, 6, 7, 8]));
    assert_eq!(list("1-7:3/5", 10), Ok(vec![1, 2, 3, 6, 7]));
    assert_eq!(list("ALL:1/3", 8), Ok(vec![0, 3, 6]));
    assert_eq!(list("0-7:0/3", 8), Ok(vec![]));
}

#[test]
fn lists_that_are_none_are_refused_with_cause_and_remedy() {
    let region = |text: &str| MaskError::Region {
        region: text.to_owned(),
    };
    for text in [
        "-3", "3-", "a", "1-2-3", "0x1", "5:1/2", "0-3:1", "0-3:1/2N", "alle", "N1", "+1",
    ] {
        assert_eq!(list(text, 64), Err(region(text)), "{text}");
    }
    let beyond = |number| MaskError::Beyond { number, bits: 8 };
    assert_eq!(list("0-8", 8), Err(beyond(8)));
    assert_eq!(list("4294967295", 8), Err(beyond(4_294_967_295)));
    let owned = |region: &str| region.to_owned();
    let number = MaskError::Number {
        region: owned("4294967296"),
    };
    assert_eq!(list("4294967296", 8), Err(number));
    let backwards = MaskError::Backwards {
        region: owned("3-2"),
    };
    assert_eq!(list("3-2", 8), Err(backwards));
    for text in ["0-3:1/0", "0-3:3/2"] {
        let pattern = MaskError::Pattern {
            region: owned(text),
        };
        assert_eq!(list(text, 8), Err(pattern));
    }
    let none = MaskError::Beyond { number: 0, bits: 0 };
    assert_eq!(list("all", 0), Err(none));
}

#[test]
fn masks_are_printed_as_linux_prints_them() {
    let print = |text, bits| {
        let mask = Mask::from_list(text, bits).unwrap();
        (mask.hex().to_string(), mask.list().to_string())
    };
    let pair = |hex: &str, list: &str| (hex.to_owned(), list.to_owned());
    assert_eq!(print("0", 1), pair("1", "0"));
    assert_eq!(print("0-3,7", 8), pair("8f", "0-3,7"));
    assert_eq!(print("", 8), pair("00", ""));
    assert_eq!(print("4", 5), pair("10", "4"));
    assert_eq!(print("0-1,3", 32), pair("0000000b", "0-1,3"));
    assert_eq!(print("32", 33), pair("1,00000000", "32"));
    assert_eq!(print("0,39", 40), pair("80,00000001", "0,39"));
    assert_eq!(
        print("30-65", 96),
        pair("00000003,ffffffff,c0000000", "30-65")
    );
    assert_eq!(print("", 0), pair("", ""));
}

/// What a mask is, digit by digit.
fn digits(set: &BTreeSet<usize>, bits: usize) -> String {
    let mut text = String::new();
    for digit in (0..bits.div_ceil(4)).rev() {
        let value = (0..4).filter(|bit| set.contains(&(digit * 4 + bit)));
        let value = value.map(|bit| 1 << bit).sum();
        text.push(char::from_digit(value, 16).unwrap());
        if digit > 0 && digit % 8 == 0 {
            text.push(',');
        }
    }
    text
}

#[test]
fn property_masks_come_back_from_both_forms() {
    let sets = (1usize..300).prop_flat_map(|bits| {
        let density = 1usize..=bits;
        (Just(bits), density).prop_flat_map(|(bits, most)| {
            (Just(bits), prop::collection::btree_set(0..bits, 0..=most))
        })
    });
    seeds::runner(2000)
        .run(&sets, |(bits, set)| {
            let mask = Mask::of(set.iter().copied(), bits).unwrap();
            prop_assert_eq!(mask.hex().to_string(), digits(&set, bits));
            let hex = Mask::from_hex(&mask.hex().to_string(), bits).unwrap();
            let list = Mask::from_list(&mask.list().to_string(), bits).unwrap();
            prop_assert_eq!(&hex, &mask);
            prop_assert_eq!(&list, &mask);
            prop_assert_eq!(list.iter().collect::<BTreeSet<_>>(), set);
            Ok(())
        })
        .unwrap();
}

#[test]
fn property_any_text_is_a_mask_or_an_error() {
    let texts = "[0-9a-fA-FN,:/ \n-]{0,24}|all|.{0,8}";
    seeds::runner(20_000)
        .run(&(texts, 0usize..100), |(text, bits)| {
            for mask in [Mask::from_hex(&text, bits), Mask::from_list(&text, bits)] {
                match mask {
                    Ok(mask) => prop_assert!(mask.iter().all(|number| number < bits)),
                    Err(error) => prop_assert!(!error.to_string().is_empty()),
                }
            }
            Ok(())
        })
        .unwrap();
}
