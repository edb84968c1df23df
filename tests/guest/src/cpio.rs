//! Writes an archive that the kernel takes as its first file system (cpio, "newc").

/// An archive being made.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const TRAILER: &str = "TRAILER!!!";

impl Archive {
    /// A directory; those above it must have been added before.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// A file that may be run.
    pub fn file(&mut self, path: &str, data: &[u8]) {
        self.entry(path, PROGRAM, data);
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK, target.as_bytes());
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, data: &[u8]) {
        self.entries += 1;
        // Inode, mode, owner, group, links, time, size, device and device of a node (two numbers
        // each), length of the name, check sum; each as eight digits.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            data.len() as u32,
            0,
            0,
            0,
            0,
            path.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    /// Names and data each end at a multiple of four bytes.
    fn pad(&mut self) {
        let len = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(len, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_begin_at_multiples_of_four_and_end_with_the_trailer() {
        let mut archive = Archive::default();
        archive.directory("a");
        archive.file("a/b", b"hello");
        archive.link("c", "a/b");
        let bytes = archive.finish();
        let mut at = 0;
        let mut names = Vec::new();
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 6], b"070701", "at {at}");
            let field = |n: usize| {
                let from = at + 6 + 8 * n;
                let text = std::str::from_utf8(&bytes[from..from + 8]).expect("digits");
                usize::from_str_radix(text, 16).expect("a number")
            };
            let (size, name) = (field(6), field(11));
            let begin = at + 110;
            names.push(String::from_utf8_lossy(&bytes[begin..begin + name - 1]).into_owned());
            at = (begin + name).next_multiple_of(4);
            at = (at + size).next_multiple_of(4);
        }
        assert_eq!(names, ["a", "a/b", "c", TRAILER]);
    }
}
