package org.tampu.event;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;
import org.tampu.event.AttributeProgress.Life;
import org.tampu.event.AttributeProgress.Missed;

class AttributeProgressTest {
    private final AttributeProgress progress = new AttributeProgress();

    private Life came(String name, String incarnation, long number) {
        Life life = progress.of(name, incarnation);
        assertNull(life.event(number));
        return life;
    }

    @Test
    void withinALifeTheMissingEventsAreExact() {
        Life life = came("a/b/c/d", "life1", 5);
        life.gap(9);
        progress.renewed();
        Life again = progress.of("A/b/c/d", "life1");
        assertEquals(new Missed(9, 12, false), again.event(12));
        assertNull(again.event(13));
        progress.renewed();
        assertEquals(AttributeProgress.NOTHING, progress.of("a/b/c/d", "life1").event(13));
        progress.renewed();
        assertEquals(AttributeProgress.NOTHING, progress.of("a/b/c/d", "life1").event(14));
    }

    @Test
    void ofAnotherLifeTheirNumberIsUnknown() {
        came("a/b/c/d", "life1", 5);
        progress.renewed();
        Life other = progress.of("a/b/c/d", "life2");
        assertEquals(AttributeProgress.UNKNOWN, other.event(1));
        assertNull(other.event(2));
        assertNull(progress.of("a/b/c/new", "life2").event(3));
        // The first life has not been heard of since, so it says nothing about a third one.
        progress.renewed();
        assertEquals(new Missed(3, 4, false), progress.of("a/b/c/d", "life2").event(4));
    }

    @Test
    void aLifeWithoutAnEventHidesTheOneBeforeItFromNobody() {
        came("a/b/c/d", "life1", 5).ended();
        progress.of("a/b/c/d", "life2");
        progress.renewed();
        assertEquals(AttributeProgress.UNKNOWN, progress.of("a/b/c/d", "life2").event(1));
    }

    @Test
    void whileTheHubLivesItReportsItself() {
        came("a/b/c/d", "life1", 5).ended();
        assertNull(progress.of("a/b/c/d", "life2").event(7));
    }
}
