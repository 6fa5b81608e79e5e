package org.tampu.log;

/** Levels of {@code java.util.logging}, and of ACS's classes above it, as ACS orders them by their numbers. */
final class JulLevels {
    /** ACS's own levels, which have the numbers of other ones. */
    private static final String ACS = "alma.acs.logging.";

    private JulLevels() {}

    /** Returns the level; one between two of ACS's counts as the higher, as in ACS. */
    static Level of(java.util.logging.Level level, Level severe) {
        int number = level.intValue();
        if (number <= 300) {
            return Level.TRACE;
        } else if (number <= 400) {
            return Level.DELOUSE;
        } else if (number <= 700) {
            return Level.DEBUG;
        } else if (number <= 800) {
            return Level.INFO;
        } else if (number <= 801) {
            return Level.NOTICE;
        } else if (number <= 900) {
            return Level.WARNING;
        } else if (number <= 901) {
            return Level.ERROR;
        } else if (number <= 902) {
            return Level.CRITICAL;
        } else if (number <= 903) {
            return Level.ALERT;
        }
        // ACS's Emergency has the number of the JDK's SEVERE, which in other programs is any error.
        return level.getClass().getName().startsWith(ACS) ? Level.EMERGENCY : severe;
    }
}
