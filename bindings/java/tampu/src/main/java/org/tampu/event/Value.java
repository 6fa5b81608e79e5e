package org.tampu.event;

import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.List;

/**
 * A value: a scalar, a row ({@code spectrum}) or rows ({@code image}) of elements.
 *
 * @param type type of the elements
 * @param format 0 scalar, 1 spectrum, 2 image
 * @param x elements of a row
 * @param y rows of an image, else 0
 * @param elements the elements, in the array that {@link DataType} names
 */
public record Value(DataType type, int format, int x, int y, Object elements) {
    private static final List<String> FORMATS = List.of("scalar", "spectrum", "image");

    /** Checks that elements, type and shape fit each other. */
    public Value {
        Class<?> wanted = switch (type) {
            case BOOLEAN -> boolean[].class;
            case UCHAR, STATE -> byte[].class;
            case SHORT, USHORT, ENUM -> short[].class;
            case LONG, ULONG -> int[].class;
            case LONG64, ULONG64 -> long[].class;
            case FLOAT -> float[].class;
            case DOUBLE -> double[].class;
            case STRING -> String[].class;
            case ENCODED -> Encoded.class;
        };
        if (!wanted.isInstance(elements)) {
            throw new IllegalArgumentException("elements of " + type.label() + " are a " + wanted.getSimpleName() + ", not a "
                    + (elements == null ? "null" : elements.getClass().getSimpleName()));
        }
        long expected = format == 0 ? 1 : format == 1 ? x : (long) x * y;
        int given = type == DataType.ENCODED ? 1 : Array.getLength(elements);
        if (format < 0 || format > 2 || given != expected) {
            throw new IllegalArgumentException(given + " elements are not a " + (format < 0 || format > 2 ? "?" : FORMATS.get(format))
                    + " of " + x + " x " + y);
        }
    }

    private static Value scalar(DataType type, Object elements) {
        return new Value(type, 0, 1, 0, elements);
    }

    /** Makes a DevDouble. */
    public static Value of(double value) {
        return scalar(DataType.DOUBLE, new double[] {value});
    }

    /** Makes a DevFloat. */
    public static Value of(float value) {
        return scalar(DataType.FLOAT, new float[] {value});
    }

    /** Makes a DevLong. */
    public static Value of(int value) {
        return scalar(DataType.LONG, new int[] {value});
    }

    /** Makes a DevLong64. */
    public static Value of(long value) {
        return scalar(DataType.LONG64, new long[] {value});
    }

    /** Makes a DevBoolean. */
    public static Value of(boolean value) {
        return scalar(DataType.BOOLEAN, new boolean[] {value});
    }

    /** Makes a DevString. */
    public static Value of(String value) {
        return scalar(DataType.STRING, new String[] {value});
    }

    /** Makes a DevEncoded. */
    public static Value of(Encoded value) {
        return scalar(DataType.ENCODED, value);
    }

    /** Makes a scalar of any type; its one element in the type's array. */
    public static Value scalarOf(DataType type, Object elements) {
        return scalar(type, elements);
    }

    /** Makes a row. */
    public static Value spectrum(DataType type, Object elements) {
        return new Value(type, 1, Array.getLength(elements), 0, elements);
    }

    /** Makes an image of {@code y} rows of {@code x} elements. */
    public static Value image(DataType type, int x, int y, Object elements) {
        return new Value(type, 2, x, y, elements);
    }

    /** Returns the first element as a double. */
    public double asDouble() {
        Object first = type == DataType.ENCODED || x == 0 ? null : Array.get(elements, 0);
        if (first instanceof Number number) {
            return switch (type) {
                case UCHAR, STATE -> number.byteValue() & 0xff;
                case USHORT -> number.shortValue() & 0xffff;
                case ULONG -> number.intValue() & 0xffff_ffffL;
                default -> number.doubleValue();
            };
        }
        throw new IllegalStateException(type.label() + " has no number as first element");
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Value value && type == value.type && format == value.format && x == value.x && y == value.y
                && Arrays.deepEquals(new Object[] {elements}, new Object[] {value.elements});
    }

    @Override
    public int hashCode() {
        return Arrays.deepHashCode(new Object[] {type, format, x, y, elements});
    }

    @Override
    public String toString() {
        String text = Arrays.deepToString(new Object[] {elements});
        return type.label() + " " + FORMATS.get(format) + " " + text.substring(1, text.length() - 1);
    }
}
