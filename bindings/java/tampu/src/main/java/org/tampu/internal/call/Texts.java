package org.tampu.internal.call;

import java.util.Arrays;

/** Texts of values that are not stored raw. An error in a value's own code must not end the call. */
final class Texts {
    private Texts() {}

    static String of(Object value) {
        try {
            if (value instanceof Object[] array) {
                return Arrays.deepToString(array);
            } else if (value != null && value.getClass().isArray()) {
                String one = Arrays.deepToString(new Object[] {value});
                return one.substring(1, one.length() - 1);
            }
            String text = String.valueOf(value);
            return text == null ? "null" : text;
        } catch (Throwable broken) {
            return "[" + value.getClass().getName() + ".toString() threw " + broken.getClass().getName() + "]";
        }
    }
}
