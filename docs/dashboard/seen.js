// What a panel has room for, of the nodes that are the same in each picture; of a legend, its pattern.
nodes => nodes
  .filter(node => {
    const inside = node.getBoundingClientRect();
    const panel = (node.closest("section") || document.body).getBoundingClientRect();
    return inside.height > 0 && inside.bottom <= panel.bottom && inside.right <= panel.right;
  })
  .map(node => node.dataset.pattern || node.innerText.trim())
