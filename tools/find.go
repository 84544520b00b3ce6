package tools

import "context"

// Search implements ToolCatalog.
func (c *catalog) Search(ctx context.Context, query string, tags []string, limit int) []Tool {
	if c.search == nil || limit <= 0 {
		return nil
	}
	snap := c.Snapshot()
	if err := c.syncSearch(ctx, snap); err != nil {
		c.logger.WarnContext(ctx, "tool search index is behind", "error", err)
	}
	visible := snap.Visible(FilterFrom(ctx))
	for ask := limit; ; ask *= 2 {
		found, err := c.search.Search(ctx, query, tags, ask)
		if err != nil {
			c.logger.WarnContext(ctx, "tool search failed", "error", err)
			return nil
		}
		hits := keepVisible(visible, found, limit)
		if len(hits) == limit || len(found) < ask {
			return hits
		}
	}
}

func keepVisible(v *VisibleSet, found []Tool, limit int) []Tool {
	var hits []*binding
	for _, t := range found {
		if i, ok := v.find(t.Name); ok && len(hits) < limit {
			hits = append(hits, v.list[i])
		}
	}
	return copyTools(hits)
}

// syncSearch brings the index up to the snapshot.
func (c *catalog) syncSearch(ctx context.Context, s *Snapshot) error {
	c.searchMu.Lock()
	defer c.searchMu.Unlock()
	if c.synced >= s.generation {
		return nil
	}
	if err := c.search.Sync(ctx, copyTools(s.sorted)); err != nil {
		return err
	}
	c.synced = s.generation
	return nil
}
