package org.tampu.event;

import java.util.Arrays;

/** Bytes with a word for their format. */
public record Encoded(String format, byte[] data) {
    @Override
    public boolean equals(Object other) {
        return other instanceof Encoded encoded && format.equals(encoded.format) && Arrays.equals(data, encoded.data);
    }

    @Override
    public int hashCode() {
        return 31 * format.hashCode() + Arrays.hashCode(data);
    }
}
