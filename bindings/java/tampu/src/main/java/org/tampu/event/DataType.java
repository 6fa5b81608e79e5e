package org.tampu.event;

/** The type of a value's elements. */
public enum DataType {
    /** True or false, in a {@code boolean[]}. */
    BOOLEAN(1, 1, "DevBoolean"),
    /** 8 bits without sign, in a {@code byte[]}. */
    UCHAR(2, 1, "DevUChar"),
    /** 16 bits, in a {@code short[]}. */
    SHORT(3, 2, "DevShort"),
    /** 16 bits without sign, in a {@code short[]}. */
    USHORT(4, 2, "DevUShort"),
    /** 32 bits, in an {@code int[]}. */
    LONG(5, 4, "DevLong"),
    /** 32 bits without sign, in an {@code int[]}. */
    ULONG(6, 4, "DevULong"),
    /** 64 bits, in a {@code long[]}. */
    LONG64(7, 8, "DevLong64"),
    /** 64 bits without sign, in a {@code long[]}. */
    ULONG64(8, 8, "DevULong64"),
    /** 32 bits of IEEE 754, in a {@code float[]}. */
    FLOAT(9, 4, "DevFloat"),
    /** 64 bits of IEEE 754, in a {@code double[]}. */
    DOUBLE(10, 8, "DevDouble"),
    /** Texts, in a {@code String[]}. */
    STRING(11, 0, "DevString"),
    /** States of devices by Tango's numbers, in a {@code byte[]}. */
    STATE(12, 1, "DevState"),
    /** Bytes with a word for their format, in a {@link Encoded}. */
    ENCODED(13, 0, "DevEncoded"),
    /** The index of one of the attribute's labels, in a {@code short[]}. */
    ENUM(14, 2, "DevEnum");

    private static final DataType[] ALL = values();

    private final int number;
    private final int width;
    private final String label;

    DataType(int number, int width, String label) {
        this.number = number;
        this.width = width;
        this.label = label;
    }

    /** Returns the number of the wire. */
    public int number() {
        return number;
    }

    /** Returns the bytes of an element, 0 for texts and encoded bytes. */
    public int width() {
        return width;
    }

    /** Returns Tango's name of the type, as {@code DevDouble}. */
    public String label() {
        return label;
    }

    /**
     * Returns the type of this number.
     *
     * @throws IllegalArgumentException for a number that no type has
     */
    public static DataType of(int number) {
        if (number < 1 || number > ALL.length) {
            throw new IllegalArgumentException("unknown data type " + number);
        }
        return ALL[number - 1];
    }

    /** Returns the type of this name. */
    public static DataType of(String label) {
        for (DataType type : ALL) {
            if (type.label.equals(label)) {
                return type;
            }
        }
        throw new IllegalArgumentException("unknown data type " + label);
    }
}
