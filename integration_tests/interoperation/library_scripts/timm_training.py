"""Train an image model with the optimizer, the schedule and the average of timm."""

import timm
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch


def main():
    torch.manual_seed(0)
    model = timm.create_model("test_vit", num_classes=4, img_size=32)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3)
    schedule, _ = timm.scheduler.create_scheduler_v2(optimizer, num_epochs=3, warmup_epochs=1)
    average = timm.utils.ModelEmaV3(model, decay=0.9)
    compiled = torch.compile(model)
    criterion = timm.loss.LabelSmoothingCrossEntropy(0.1)

    losses = []
    for epoch in range(3):
        for _ in range(2):
            images, labels = torch.randn(4, 3, 32, 32), torch.randint(4, (4,))
            loss = criterion(compiled(images), labels)
            optimizer.zero_grad()
            loss.backward()
            timm.utils.dispatch_clip_grad(compiled.parameters(), 1.0)
            optimizer.step()
            average.update(model)
            losses.append(loss.item())
        schedule.step(epoch + 1)

    evaluated = torch.compile(average.module.eval())
    with torch.no_grad():
        total = evaluated(torch.ones(1, 3, 32, 32)).sum()
    print(f"losses {losses[0]:.4f} to {losses[-1]:.4f}, average {total:.4f}")


if __name__ == "__main__":
    main()
