package org.tampu.event;

import java.util.Locale;

/** Option of an attribute's declaration. */
public enum AttributeOption {
    /** The attribute has a stream of its own, so that only its subscribers acknowledge its events. */
    ACKNOWLEDGED,
    /** Another process may own the attribute too, with the same option. Subscribers then get it from one of them. */
    REDUNDANT,
    /** Its events travel before ordinary data where a link is busy. */
    URGENT;

    /** Returns the member of DECLARE. */
    String member() {
        return name().toLowerCase(Locale.ROOT);
    }
}
