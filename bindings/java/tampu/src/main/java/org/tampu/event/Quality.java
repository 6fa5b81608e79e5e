package org.tampu.event;

/** The quality of a reading. */
public enum Quality {
    /** As it should be. */
    VALID,
    /** The reading has no value. */
    INVALID,
    /** Beyond an alarm limit. */
    ALARM,
    /** On its way to a set point. */
    CHANGING,
    /** Beyond a warning limit. */
    WARNING;

    private static final Quality[] ALL = values();

    static Quality of(int number) {
        return number < ALL.length ? ALL[number] : INVALID;
    }
}
