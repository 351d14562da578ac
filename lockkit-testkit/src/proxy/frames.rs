//! Where the frames of RESP3 begin and end.

/// Follows a stream of RESP3 (or RESP2) and can leave out its push messages.
///
/// It holds no bytes back. A stream of something else does it no harm: nothing is left out of it
/// unless asked for.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Values that the present frame lacks; between frames, none.
    lacking: u64,
    /// Whether the present frame is left out.
    leaving_out: bool,
    place: Place,
}

#[derive(Debug, Default)]
enum Place {
    /// Before a value.
    #[default]
    Start,
    /// In the first line of a value: its type, and the beginning of what follows.
    Line(u8, Vec<u8>),
    /// In a blob of which so many bytes are to come, the line end included.
    Blob(u64),
}

/// As much of a line as is kept: a length has less.
const LENGTH: usize = 24;

impl Frames {
    /// What remains of these bytes. Without `no_pushes` that is all of them, but for the rest of a
    /// push message that was being left out.
    pub(super) fn filter(&mut self, bytes: &[u8], no_pushes: bool) -> Vec<u8> {
        let mut kept = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if self.lacking == 0 {
                self.lacking = 1;
                self.leaving_out = no_pushes && first == b'>';
            }
            let (taken, after) = rest.split_at(self.advance(rest));
            if !self.leaving_out {
                kept.extend_from_slice(taken);
            }
            rest = after;
        }
        kept
    }

    /// Goes on by one step and tells how many bytes, at least one, that took. No step goes beyond
    /// the end of a frame.
    fn advance(&mut self, bytes: &[u8]) -> usize {
        match &mut self.place {
            Place::Start => {
                self.place = Place::Line(bytes[0], Vec::new());
                1
            }
            Place::Line(kind, line) => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                let taken = end.map_or(bytes.len(), |end| end + 1);
                line.extend_from_slice(&bytes[..taken.min(LENGTH - line.len().min(LENGTH))]);
                if end.is_some() {
                    let (kind, length) = (*kind, length(line));
                    self.value(kind, length);
                }
                taken
            }
            Place::Blob(left) => {
                let taken =
                    usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= taken as u64;
                if *left == 0 {
                    self.place = Place::Start;
                    self.lacking -= 1;
                }
                taken
            }
        }
    }

    /// After the first line of a value.
    fn value(&mut self, kind: u8, length: Option<u64>) {
        self.place = Place::Start;
        match (kind, length) {
            (b'$' | b'=' | b'!', Some(length)) => {
                self.place = Place::Blob(length.saturating_add(2));
            }
            (b'*' | b'~' | b'>', Some(values)) => {
                self.lacking = (self.lacking - 1).saturating_add(values);
            }
            (b'%', Some(pairs)) => {
                self.lacking = (self.lacking - 1).saturating_add(pairs.saturating_mul(2));
            }
            // Attributes come before a value and are none.
            (b'|', Some(pairs)) => {
                self.lacking = self.lacking.saturating_add(pairs.saturating_mul(2));
            }
            // Numbers, texts of one line, and the null of RESP2, whose length is -1.
            _ => self.lacking -= 1,
        }
    }
}

fn length(line: &[u8]) -> Option<u64> {
    std::str::from_utf8(line).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUSH: &[u8] = b">3\r\n$7\r\nmessage\r\n$2\r\nin\r\n$4\r\n>1\r\n\r\n";
    const REPLIES: [&[u8]; 10] = [
        b"+OK\r\n",
        b":-7\r\n",
        b"$5\r\n>2\r\n.\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*2\r\n*0\r\n%1\r\n+a\r\n~1\r\n#t\r\n",
        b"|1\r\n+ttl\r\n:3\r\n*1\r\n,1.5\r\n",
        b"=8\r\ntxt:>1\r\n\r\n",
        b"-ERR >1\r\n",
        b"_\r\n",
    ];

    #[test]
    fn pushes_are_left_out_wherever_the_stream_is_cut_into_pieces() {
        let stream = [PUSH, &REPLIES.join(PUSH), PUSH].concat();
        for size in 1..=stream.len() {
            let mut frames = Frames::default();
            let pieces = stream.chunks(size).map(|piece| frames.filter(piece, true));
            assert_eq!(pieces.collect::<Vec<_>>().concat(), REPLIES.concat());
        }
    }

    #[test]
    fn a_push_that_has_begun_to_pass_passes_and_one_that_was_begun_to_be_left_out_is() {
        let mut frames = Frames::default();
        let (head, tail) = PUSH.split_at(9);
        assert_eq!(frames.filter(head, false), head);
        assert_eq!(frames.filter(tail, true), tail);
        assert_eq!(frames.filter(head, true), b"");
        assert_eq!(
            frames.filter(&[tail, REPLIES[0]].concat(), false),
            REPLIES[0]
        );
    }

    #[test]
    fn other_protocols_pass_as_they_are() {
        let stream: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut frames = Frames::default();
        let pieces = stream.chunks(7).map(|piece| frames.filter(piece, false));
        assert_eq!(pieces.collect::<Vec<_>>().concat(), stream);
    }
}
