#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the RTL package, the Rust constants and the reference page from ferronic_window.rdl.

Run as `cargo xtask regs`; with --check nothing is written, a difference is reported and the exit
code is 1. Needs the wheel systemrdl-compiler, which xtask installs under .tools/.
"""

import argparse
import pathlib
import re
import sys
import textwrap

from systemrdl import RDLCompiler, RDLCompileError
from systemrdl.node import RegfileNode, RegNode

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = "rtl/regs/ferronic_window.rdl"
ORIGIN = f"Made from {SOURCE} by `cargo xtask regs`: change that file, not this one."


def camel(name):
    """PAIRS_IN_USE -> PairsInUse"""
    return "".join(part.capitalize() for part in name.lower().split("_"))


def access(field):
    sw = field.get_property("sw").name
    return {"r": "ro", "w": "wo", "rw": "rw"}[sw]


class Field:
    def __init__(self, node):
        self.name = node.inst_name
        self.lsb = node.lsb
        self.width = node.width
        self.access = access(node)
        self.reset = node.get_property("reset")
        self.desc = re.sub(r"\s+", " ", node.get_property("desc") or "").strip()
        self.unit = node.get_property("unit", default=None)
        # A field that is the whole register needs no constants of its own.
        self.whole = self.name == "value" and self.width == 32

    @property
    def bits(self):
        return f"{self.lsb + self.width - 1}:{self.lsb}" if self.width > 1 else f"{self.lsb}"


class Register:
    def __init__(self, node, row=None):
        self.name = node.inst_name
        # Of a row of registers that there is several times: of the first, and how far on the next.
        self.count = row.array_dimensions[0] if row else 1
        self.stride = row.array_stride if row else 0
        self.offset = node.address_offset + (row.raw_address_offset if row else 0)
        self.desc = re.sub(r"\s+", " ", node.get_property("desc") or "").strip()
        if not self.desc:
            sys.exit(f"{SOURCE}: {self.name} has no desc")
        self.fields = [Field(f) for f in node.fields()]
        for field in self.fields:
            if not field.whole and not field.desc:
                sys.exit(f"{SOURCE}: {self.name}.{field.name} has no desc")
        kinds = {f.access for f in self.fields}
        self.access = kinds.pop() if len(kinds) == 1 else "rw"

    @property
    def reset(self):
        """The value after reset, or None if it depends on how the card was built."""
        if any(f.reset is None for f in self.fields if f.access != "wo"):
            return None
        return sum(f.reset << f.lsb for f in self.fields if f.access != "wo")


class Window:
    def __init__(self, node):
        self.base = node.get_property("bar_offset")
        self.bytes = node.get_property("window_bytes")
        self.registers = []
        for child in node.children():
            if isinstance(child, RegNode):
                self.registers.append(Register(child))
            elif isinstance(child, RegfileNode):
                self.registers += [Register(r, child) for r in child.children()]


def read_source():
    compiler = RDLCompiler()
    try:
        compiler.compile_file(str(ROOT / SOURCE))
        return Window(compiler.elaborate().top)
    except RDLCompileError:
        sys.exit(f"{SOURCE} does not compile, see above")


def comment(text, prefix, width=100):
    return [prefix + line for line in textwrap.wrap(text, width - len(prefix))]


def make_sv(window):
    out = ["// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1", "//"]
    out += comment(ORIGIN, "// ")
    out += [
        "//",
        "// Offsets are bytes from the base of the window; `Lsb` and `Width` place a field in its",
        "// register; `Reset` is left out where the value depends on parameters.",
        "",
        "// Software uses constants that the RTL has no need of.",
        "/* verilator lint_off UNUSEDPARAM */",
        "package ferronic_window_pkg;",
        "",
        f"  localparam logic [15:0] FwBase = 16'h{window.base:04x};",
        f"  localparam int unsigned FwBytes = {window.bytes};",
    ]
    for reg in window.registers:
        name = f"Fw{camel(reg.name)}"
        of = f", {reg.count} of them" if reg.count > 1 else ""
        out += ["", f"  // {reg.name}, {reg.access}{of}"]
        out.append(f"  localparam logic [15:0] {name}Offset = 16'h{reg.offset:03x};")
        if reg.count > 1:
            out.append(f"  localparam logic [15:0] {name}Stride = 16'h{reg.stride:03x};")
        if reg.reset is not None and reg.access != "wo":
            out.append(f"  localparam logic [31:0] {name}Reset = 32'h{reg.reset:08x};")
        for field in reg.fields:
            if not field.whole:
                part = name + camel(field.name)
                out.append(f"  localparam int unsigned {part}Lsb = {field.lsb};")
                out.append(f"  localparam int unsigned {part}Width = {field.width};")
    out += ["", "endpackage", "/* verilator lint_on UNUSEDPARAM */", ""]
    return "\n".join(out)


RUST_HEAD = '''
/// A field of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Position of the lowest bit.
    pub lsb: u32,
    /// Number of bits.
    pub width: u32,
}

impl Field {
    /// The bits of the register that belong to the field.
    pub const fn mask(self) -> u32 {
        (u32::MAX >> (32 - self.width)) << self.lsb
    }

    /// The field's value in `register`.
    pub const fn get(self, register: u32) -> u32 {
        (register & self.mask()) >> self.lsb
    }

    /// `register` with the field set to `value`; bits that do not fit are lost.
    pub const fn set(self, register: u32, value: u32) -> u32 {
        (register & !self.mask()) | ((value << self.lsb) & self.mask())
    }
}

/// What software may do with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only; writes are ignored.
    ReadOnly,
    /// Writes only; reads as 0.
    WriteOnly,
    /// Reads and writes.
    ReadWrite,
}

/// What the description says about one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name in the reference.
    pub name: &'static str,
    /// Byte offset from the base of the window.
    pub offset: u64,
    /// What software may do with it.
    pub access: Access,
    /// Its value after reset, if that does not depend on how the card was built.
    pub reset: Option<u32>,
    /// How many there are, one for each queue pair or the like.
    pub count: u64,
    /// How many bytes they are apart.
    pub stride: u64,
}
'''.strip("\n").split("\n")


def make_rust(window):
    kinds = {"ro": "ReadOnly", "wo": "WriteOnly", "rw": "ReadWrite"}
    out = ["//! The registers of Ferronic's own window: offsets in bytes from its base, and fields."]
    out += ["//!"] + comment(ORIGIN, "//! ") + [""] + RUST_HEAD + [""]
    out += [
        "/// Where the window is in BAR0 of this card. Software takes the place from the DVSEC.",
        f"pub const BASE: u64 = 0x{window.base:04x};",
        "/// Size of the window in bytes.",
        f"pub const BYTES: u64 = 0x{window.bytes:04x};",
        "",
    ]
    for reg in window.registers:
        note = f" Unit: {reg.fields[0].unit}." if reg.fields[0].whole and reg.fields[0].unit else ""
        out += comment(f"{reg.desc}{note}", "/// ")
        out.append(f"pub const {reg.name}: u64 = 0x{reg.offset:03x};")
        if reg.count > 1:
            text = f"Bytes from one [`{reg.name}`] to the next."
            out += comment(text, "/// ")
            out.append(f"pub const {reg.name}_STRIDE: u64 = 0x{reg.stride:02x};")
        for field in reg.fields:
            if not field.whole:
                note = f" Unit: {field.unit}." if field.unit else ""
                out += comment(f"Field of [`{reg.name}`]. {field.desc}{note}", "/// ")
                name = f"{reg.name}_{field.name.upper()}"
                place = f"{{ lsb: {field.lsb}, width: {field.width} }}"
                out.append(f"pub const {name}: Field = Field {place};")
        out.append("")
    out.append("/// Every register of the window, in order of offset.")
    out.append("pub const REGISTERS: &[Register] = &[")
    for reg in window.registers:
        reset = "None" if reg.reset is None or reg.access == "wo" else f"Some(0x{reg.reset:08x})"
        out += [
            "    Register {",
            f'        name: "{reg.name}",',
            f"        offset: {reg.name},",
            f"        access: Access::{kinds[reg.access]},",
            f"        reset: {reset},",
            f"        count: {reg.count},",
            f"        stride: {hex(reg.stride) if reg.stride else 0},",
            "    },",
        ]
    out += ["];", ""]
    return "\n".join(out)


def make_page(window):
    out = [
        "# Registers of our own window",
        "",
        f"{ORIGIN}",
        "",
        "Software finds the window through the DVSEC (vendor 0x1AF4, id 0xFE01), which carries the",
        "UUID, the version, and BAR, offset and length of the window. Registers are 32 bits wide and",
        "read and written as such; reads have no side effect; addresses that are not listed read 0",
        "and ignore writes. Counters wrap. A write to SNAPSHOT copies the counters of one virtqueue,",
        "the device counters and the time base; the registers from SNAP_QUEUE on, TIME_LO and TIME_HI",
        "hold the copy until the next one.",
        "",
        f"On this card the window is in BAR0 at 0x{window.base:04x}, 0x{window.bytes:04x} bytes long.",
        "Access: ro reads only, wo writes only, rw both. An offset with i is of row i.",
        "",
        "| offset | register | access | reset | what it is |",
        "| --- | --- | --- | --- | --- |",
    ]
    for reg in window.registers:
        reset = "by build" if reg.reset is None else f"0x{reg.reset:08x}"
        if reg.access == "wo":
            reset = "-"
        unit = reg.fields[0].unit if reg.fields[0].whole else None
        text = reg.desc + (f" Unit: {unit}." if unit else "")
        step = f" + 0x{reg.stride:02x}i" if reg.count > 1 else ""
        out.append(f"| 0x{reg.offset:03x}{step} | {reg.name} | {reg.access} | {reset} | {text} |")
    out += ["", "## Fields", "", "| register | bits | field | access | what it is |"]
    out.append("| --- | --- | --- | --- | --- |")
    for reg in window.registers:
        for field in reg.fields:
            if not field.whole:
                unit = f" Unit: {field.unit}." if field.unit else ""
                out.append(
                    f"| {reg.name} | {field.bits} | {field.name} | {field.access} | "
                    f"{field.desc}{unit} |"
                )
    out.append("")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    window = read_source()
    stale = []
    for name, text in (
        ("rtl/regs/ferronic_window_pkg.sv", make_sv(window)),
        ("host/spec/src/window.rs", make_rust(window)),
        ("docs/registers.md", make_page(window)),
    ):
        path = ROOT / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {name}")
    if check and stale:
        sys.exit(f"not up to date with {SOURCE}: {', '.join(stale)}; run `cargo xtask regs`")


if __name__ == "__main__":
    main()
