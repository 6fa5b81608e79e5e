package org.tampu.internal.bulk;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.util.zip.CRC32C;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Seals or opens the records of one direction of a protected connection: a record is one frame ({@code spec/bulk.md}). */
public final class RecordCipher {
    /** Bytes before what is sealed: the length and its checksum. */
    public static final int PREFIX = 8;
    /** Bytes of the tag. */
    public static final int TAG = 16;
    /** Bytes that a record adds to the payload of its frame. */
    public static final int ADDED = PREFIX + BulkFrame.HEADER + TAG;
    /** Records of one key. */
    private static final long NUMBERS = 1L << 40;

    private final Cipher cipher;
    private final SecretKeySpec key;
    private final byte[] iv;
    private final ByteBuffer prefix = ByteBuffer.allocate(PREFIX).order(ByteOrder.LITTLE_ENDIAN);
    private long number;

    /** Begins with the first record. */
    public RecordCipher(Keys.Half half) throws GeneralSecurityException {
        cipher = Cipher.getInstance("AES/GCM/NoPadding");
        key = new SecretKeySpec(half.key(), "AES");
        iv = half.iv();
    }

    private void begin(int mode) throws GeneralSecurityException {
        if (number >= NUMBERS) {
            throw new GeneralSecurityException("the keys of the connection are used up");
        }
        byte[] nonce = iv.clone();
        for (int index = 0; index < 8; index++) {
            nonce[4 + index] ^= (byte) (number >>> 8 * index);
        }
        cipher.init(mode, key, new GCMParameterSpec(8 * TAG, nonce));
        number++;
    }

    private int check(int length) {
        CRC32C crc = new CRC32C();
        crc.update(ByteBuffer.allocate(12).order(ByteOrder.LITTLE_ENDIAN).putInt(length).putLong(number).flip());
        return (int) crc.getValue();
    }

    /** Writes a frame as the next record into a buffer with room for it. */
    public void seal(BulkFrame header, ByteBuffer payload, ByteBuffer out) throws GeneralSecurityException {
        int length = BulkFrame.HEADER + payload.remaining() + TAG;
        prefix.clear().putInt(length).putInt(check(length)).flip();
        begin(Cipher.ENCRYPT_MODE);
        out.put(prefix.duplicate());
        cipher.updateAAD(prefix);
        ByteBuffer head = ByteBuffer.allocate(BulkFrame.HEADER);
        header.encode(head);
        cipher.update(head.flip(), out);
        cipher.doFinal(payload.duplicate(), out);
    }

    /**
     * Returns the length of the next record behind its prefix.
     *
     * @throws IllegalArgumentException if the prefix is damaged, or announces more than the longest payload
     */
    public int length(ByteBuffer before, int longestPayload) {
        ByteBuffer bytes = before.duplicate().order(ByteOrder.LITTLE_ENDIAN);
        int length = bytes.getInt();
        if (bytes.getInt() != check(length)) {
            throw new IllegalArgumentException("the length of record " + number + " was changed on its way");
        }
        int payload = length - BulkFrame.HEADER - TAG;
        if (length < 0 || payload < 0 || payload > longestPayload) {
            throw new IllegalArgumentException("a record of " + Integer.toUnsignedString(length) + " bytes; "
                    + (longestPayload + BulkFrame.HEADER + TAG) + " are allowed");
        }
        return length;
    }

    /** Opens the next record into a buffer with room for its header and payload. */
    public void open(ByteBuffer before, ByteBuffer sealed, ByteBuffer out) throws GeneralSecurityException {
        begin(Cipher.DECRYPT_MODE);
        cipher.updateAAD(before.duplicate());
        cipher.doFinal(sealed, out);
    }
}
