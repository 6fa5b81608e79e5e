package org.tampu.log;

import java.util.Locale;

/** The levels of log records, with ACS's numbers. */
public enum Level {
    /** Calls of functions. */
    TRACE(1),
    /** More detail than Debug. */
    DELOUSE(2),
    /** For who looks for an error. */
    DEBUG(3),
    /** Normal events. */
    INFO(4),
    /** Normal events that matter. */
    NOTICE(5),
    /** Something may go wrong. */
    WARNING(6),
    /** Something failed. */
    ERROR(8),
    /** A device or service failed. */
    CRITICAL(9),
    /** Somebody must act at once. */
    ALERT(10),
    /** The installation is in danger. */
    EMERGENCY(11);

    private final int number;

    Level(int number) {
        this.number = number;
    }

    /** Returns ACS's number of the level. */
    public int number() {
        return number;
    }

    /**
     * Returns the level of this name or number.
     *
     * @throws IllegalArgumentException for a text that is neither
     */
    public static Level parse(String text) {
        String name = text.strip().toUpperCase(Locale.ROOT);
        for (Level level : values()) {
            if (level.name().equals(name) || Integer.toString(level.number).equals(name)) {
                return level;
            }
        }
        if (name.equals("WARN")) {
            return WARNING;
        }
        // ACS leaves 7 undefined; its Python maps it to Error.
        if (name.equals("7")) {
            return ERROR;
        }
        throw new IllegalArgumentException("'" + text + "' is not a level (levels are Trace, Delouse, Debug, Info, Notice, Warning, "
                + "Error, Critical, Alert, Emergency, or 1 to 11)");
    }
}
