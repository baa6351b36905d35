//! Memory for one op, aligned as direct I/O wants it.

/// No device asks for more: a page.
const ALIGNMENT: usize = 4096;

/// Bytes that begin at a multiple of a page.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
    begin: usize,
    bytes: usize,
}

impl Buffer {
    /// So many, all zero.
    pub(crate) fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, begin, bytes }
    }

    pub(crate) fn get(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.bytes]
    }

    pub(crate) fn get_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_at_a_page_and_has_its_size() {
        for bytes in [1, 512, 4096, 1 << 20] {
            let mut buffer = Buffer::new(bytes);
            assert_eq!((buffer.get().len(), buffer.get_mut().as_ptr() as usize % ALIGNMENT), (bytes, 0));
        }
    }
}
