//! Server-sent events out of a byte stream, as far as model servers use them: one `data:` line an event.

/// Collects bytes and hands out complete `data:` lines.
#[derive(Debug, Default)]
pub struct Events {
    pending: Vec<u8>,
}

impl Events {
    /// Takes in what arrived; calls `tell` with the text of each event that is now complete.
    pub fn push(&mut self, bytes: &[u8], mut tell: impl FnMut(&str)) {
        self.pending.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = self.pending[begin..].iter().position(|&byte| byte == b'\n') {
            let line = self.pending[begin..begin + length].strip_prefix(b"data:");
            if let Some(text) = line.and_then(|line| std::str::from_utf8(line).ok()) {
                tell(text.trim());
            }
            begin += length + 1;
        }
        self.pending.drain(..begin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_any_cut() {
        let stream =
            "data: {\"a\":1}\n\n: comment\nevent: x\r\ndata:zwei ü\r\n\r\ndata: [DONE]\n\n".as_bytes();
        for cut in 0..stream.len() {
            let (mut events, mut told) = (Events::default(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                events.push(part, |text| told.push(text.to_owned()));
            }
            assert_eq!(told, ["{\"a\":1}", "zwei ü", "[DONE]"], "cut at {cut}");
        }
    }
}
