package org.tampu.internal.bulk;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

/** Keys and records of a protected connection, beside {@code testdata/vectors/bulk}. */
class SealedRecordTest {
    private static final byte[] TOKEN = HexFormat.of().parseHex("ab".repeat(16));

    private static byte[] vector(String name) throws Exception {
        return HexFormat.of().parseHex(Files.readString(Path.of("../../../testdata/vectors/bulk/" + name + ".hex")).replaceAll("\\s", ""));
    }

    private static byte[] payload(String name) throws Exception {
        byte[] frame = vector(name);
        return Arrays.copyOfRange(frame, BulkFrame.HEADER, frame.length);
    }

    private static Keys keys() throws Exception {
        byte[] secret = HexFormat.of().parseHex("66".repeat(32));
        return Keys.derive(secret, TOKEN, Keys.transcript(payload("v1-key-offer"), payload("v1-key-reply")));
    }

    @Test
    void theVectorIsSealedAndOpenedByteForByte() throws Exception {
        byte[] frame = vector("v1-data");
        byte[] record = vector("sealed-record");
        ByteBuffer bytes = ByteBuffer.wrap(frame);
        BulkFrame.decode(bytes);
        // The tag protects the payload, which has no checksum in the vector.
        BulkFrame header = BulkFrame.of(BulkFrame.DATA, BulkFrame.END_OF_BLOCK, 0x01020304, 7, 41, 1 << 20, bytes, false);
        ByteBuffer out = ByteBuffer.allocate(record.length);
        new RecordCipher(keys().sender()).seal(header, bytes, out);
        assertArrayEquals(record, out.array());

        ByteBuffer opened = ByteBuffer.allocate(record.length);
        open(record, opened);
        assertEquals(header, BulkFrame.decode(opened.flip()));
        assertEquals(bytes, opened);
    }

    private static void open(byte[] record, ByteBuffer into) throws Exception {
        RecordCipher opener = new RecordCipher(keys().sender());
        ByteBuffer prefix = ByteBuffer.wrap(record, 0, RecordCipher.PREFIX).slice();
        int length = opener.length(prefix, 1 << 20);
        assertEquals(record.length - RecordCipher.PREFIX, length);
        opener.open(prefix, ByteBuffer.wrap(record, RecordCipher.PREFIX, length), into);
    }

    @Test
    void everyChangedBitOfARecordIsFound() throws Exception {
        byte[] record = vector("sealed-record");
        for (int bit = 0; bit < 8 * record.length; bit++) {
            byte[] changed = record.clone();
            changed[bit / 8] ^= (byte) (1 << bit % 8);
            assertThrows(Exception.class, () -> open(changed, ByteBuffer.allocate(changed.length)), "bit " + bit);
        }
    }

    @Test
    void bothEndsGetTheSameKeysAndOthersAtEachConnection() throws Exception {
        Keys[] seen = new Keys[2];
        for (int turn = 0; turn < 2; turn++) {
            Keys.Offer offer = Keys.offer();
            Keys.Reply reply = Keys.reply(TOKEN, offer.payload());
            seen[turn] = offer.accept(TOKEN, reply.payload());
            assertArrayEquals(reply.keys().sender().key(), seen[turn].sender().key());
            assertArrayEquals(reply.keys().receiver().iv(), seen[turn].receiver().iv());
        }
        assertFalse(Arrays.equals(seen[0].sender().key(), seen[1].sender().key()));
    }

    @Test
    void anotherTokenOrAChangedBitIsFound() throws Exception {
        Keys.Offer offer = Keys.offer();
        ByteBuffer other = Keys.reply(new byte[16], offer.payload()).payload();
        assertThrows(GeneralSecurityException.class, () -> offer.accept(TOKEN, other));
        byte[] reply = new byte[98];
        Keys.reply(TOKEN, offer.payload()).payload().get(reply);
        for (int bit = 0; bit < 8 * reply.length; bit++) {
            byte[] changed = reply.clone();
            changed[bit / 8] ^= (byte) (1 << bit % 8);
            assertThrows(GeneralSecurityException.class, () -> offer.accept(TOKEN, ByteBuffer.wrap(changed)), "bit " + bit);
        }
        assertThrows(GeneralSecurityException.class, () -> Keys.reply(TOKEN, ByteBuffer.allocate(66).put(0, (byte) 1)));
    }
}
